{{/* The name that the objects of this release begin with. */}}
{{- define "concert.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "concert.reconciler" -}}
{{- printf "%s-managed-reconciler" (include "concert.fullname" .) -}}
{{- end -}}

{{/* What a selector may rest on: it never changes in the life of a release. */}}
{{- define "concert.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "concert.labels" -}}
{{ include "concert.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- define "concert.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{- define "concert.serve.account" -}}
{{- with .Values.serve.serviceAccount -}}
{{- if .create -}}{{- default (include "concert.fullname" $) .name -}}{{- else -}}{{- default "default" .name -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "concert.reconciler.account" -}}
{{- with .Values.managedReconciler.serviceAccount -}}
{{- if .create -}}{{- default (include "concert.reconciler" $) .name -}}{{- else -}}{{- default "default" .name -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Of every pod: nobody is root. */}}
{{- define "concert.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
# Files of Secrets belong to root and can be read by this group.
fsGroup: 65532
# Only a volume that is new is given to the group. To do it at every start would open the key file in it to
# the group, and then the control plane refuses the file.
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Of every container. */}}
{{- define "concert.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Where pods go, as it was asked for. */}}
{{- define "concert.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
