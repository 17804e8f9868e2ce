{{/* What one value means for another: the schema cannot say these so that one knows what to do. */}}
{{- define "concert.serve.rules" -}}
{{- $serve := .Values.serve -}}
{{- $grace := int $serve.terminationGracePeriodSeconds -}}
{{- if ge (int $serve.preStopSeconds) $grace -}}
{{- fail "serve.preStopSeconds: must be less than serve.terminationGracePeriodSeconds, which it is a part of" -}}
{{- end -}}
{{- if $serve.store.secretName -}}
{{- if not $serve.keys.secretName -}}
{{- fail "serve.keys.secretName: must be set with serve.store.secretName; values.yaml says how to make the keys" -}}
{{- end -}}
{{- if not $serve.jwt.secretName -}}
{{- fail "serve.jwt.secretName: must be set with serve.store.secretName, so that a login counts at every replica" -}}
{{- end -}}
{{- if not $serve.tls.secretName -}}
{{- fail "serve.tls.secretName: must be set with serve.store.secretName, since an authority of its own would be another one at every start" -}}
{{- end -}}
{{- else -}}
{{- if gt (int $serve.replicas) 1 -}}
{{- fail "serve.replicas: at most 1 without serve.store.secretName, since a file has one process" -}}
{{- end -}}
{{- if or $serve.keys.secretName $serve.store.authoritySecretName $serve.leaderElection -}}
{{- fail "serve.keys, serve.store.authoritySecretName and serve.leaderElection: mean nothing without serve.store.secretName" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "concert.reconciler.rules" -}}
{{- if and (gt (int .Values.managedReconciler.replicas) 1) (not .Values.managedReconciler.leaderElection.enabled) -}}
{{- fail "managedReconciler.leaderElection.enabled: must be true with more than one replica, or each makes everything" -}}
{{- end -}}
{{- end -}}
