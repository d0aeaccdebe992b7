"""Multi-agent posthumous credit assignment; only its settings so far."""
