"""The output directory of a SkillOpt run becomes a run with commits."""
