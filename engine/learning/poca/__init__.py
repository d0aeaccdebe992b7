"""MA-POCA: multi-agent posthumous credit assignment."""
