"""What comes in from elsewhere: SkillOpt runs, public data, and files of tasks."""
