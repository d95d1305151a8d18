"""What a run says: rates with intervals, paired differences, and the tables that the figures draw."""
