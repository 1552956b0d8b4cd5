"""What training any model has in common: Trainer, run folder, optimisation settings."""
