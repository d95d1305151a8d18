"""Stories: what a user says over one or more sessions, the facts it carries, what should happen."""
