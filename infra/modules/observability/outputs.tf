output "alert_topic_arn" {
  description = "ARN of the topic that all alerts are published to."
  value       = aws_sns_topic.alerts.arn
}

output "dashboard_name" {
  description = "Name of the dashboard."
  value       = aws_cloudwatch_dashboard.this.dashboard_name
}

output "alarm_names" {
  description = "Names of all alarms, sorted."
  value = sort(concat(
    [for alarm in aws_cloudwatch_metric_alarm.metric : alarm.alarm_name],
    [for alarm in aws_cloudwatch_metric_alarm.sum : alarm.alarm_name],
  ))
}
