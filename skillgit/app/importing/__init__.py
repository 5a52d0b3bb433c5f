"""What comes in from elsewhere: a directory that the reference implementation, SkillOpt, wrote becomes a run."""
