"""The cloud: sessions of many devices over one model, behind a WebSocket."""
