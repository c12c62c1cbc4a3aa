output "state_machine_arns" {
  description = "The state machines' ARNs: master, rebuilder, maintenance."
  value       = { for machine, made in aws_sfn_state_machine.this : machine => made.arn }
}

output "schedule_names" {
  description = "The schedules' names by what they start: run, daily-maintenance, weekly-maintenance, reconcile, watch, circuit-breaker, discovery."
  value       = { for schedule, made in aws_scheduler_schedule.this : schedule => made.name }
}

output "schedule_group_name" {
  description = "The group that all schedules are in."
  value       = aws_scheduler_schedule_group.this.name
}
