"""What forward passes cost, on named hardware or here."""
