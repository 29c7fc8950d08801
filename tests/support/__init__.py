"""What several tests share: real servers on loopback, small models, sample conversations."""
