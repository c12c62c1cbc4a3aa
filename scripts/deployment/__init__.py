"""What `scripts/deploy.py` does to an AWS account, a file for each of its subjects."""
