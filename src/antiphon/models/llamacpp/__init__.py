"""Models that llama.cpp runs. Only this folder imports `llama_cpp`."""
