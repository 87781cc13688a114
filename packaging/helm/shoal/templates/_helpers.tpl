{{- define "shoal.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "shoal.labels" -}}
app.kubernetes.io/name: shoal
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* What selects the pods of one part: a dict of root and part. */}}
{{- define "shoal.selector" -}}
app.kubernetes.io/name: shoal
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "shoal.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "shoal.secret" -}}
{{ .Values.certs.secret | default (printf "%s-certs" (include "shoal.name" .)) }}
{{- end -}}

{{/* Non-root, read-only, no capabilities. */}}
{{- define "shoal.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "shoal.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* How a member finds the others. */}}
{{- define "shoal.join" -}}
{{- range .Values.nats.urls }}
- --join
- {{ . | quote }}
{{- end }}
{{- if .Values.nats.urls }}
- --shoal
- {{ .Values.nats.shoal | quote }}
{{- end }}
{{- end -}}

{{/* The files of one member in the secret: a dict of member. */}}
{{- define "shoal.certItems" -}}
{{- $member := .member -}}
{{- range $file := list "cert.pem" "key.pem" "ca.pem" "crl.pem" }}
- key: {{ printf "%s.%s" $member $file }}
  path: {{ printf "%s/%s" $member $file }}
{{- end }}
{{- end -}}

{{/* Names of the nodes' certificates. */}}
{{- define "shoal.nodeNames" -}}
{{- if eq .Values.nodes.kind "DaemonSet" -}}
{{- join " " .Values.nodes.hosts -}}
{{- else -}}
{{- $name := include "shoal.name" . -}}
{{- $all := list -}}
{{- range until (int .Values.nodes.replicas) -}}
{{- $all = append $all (printf "%s-node-%d" $name .) -}}
{{- end -}}
{{- join " " $all -}}
{{- end -}}
{{- end -}}

{{- define "shoal.check" -}}
{{- if not (has .Values.nodes.kind (list "StatefulSet" "DaemonSet")) -}}
{{- fail "nodes.kind must be StatefulSet or DaemonSet" -}}
{{- end -}}
{{- if and (eq .Values.nodes.kind "DaemonSet") (not .Values.nats.urls) -}}
{{- fail "nodes.kind DaemonSet needs nats.urls: gateways learn of such nodes through NATS" -}}
{{- end -}}
{{- if and (eq .Values.nodes.kind "DaemonSet") (not .Values.nodes.hosts) -}}
{{- fail "nodes.kind DaemonSet needs nodes.hosts: the names of the machines, which have a certificate each" -}}
{{- end -}}
{{- if and .Values.hostNetwork (not .Values.nats.urls) -}}
{{- fail "hostNetwork needs nats.urls: nodes listen on a free port, which gateways learn through NATS" -}}
{{- end -}}
{{- end -}}
