{{- define "rufous.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "rufous.selector" -}}
app.kubernetes.io/name: rufous
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rufous.labels" -}}
{{ include "rufous.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* What would lose data, or never become ready. */}}
{{- define "rufous.check" -}}
{{- $copies := int .Values.cluster.copies -}}
{{- $coordinator := .Values.cluster.coordinator -}}
{{- if and (gt (int .Values.replicas) 1) (not (hasPrefix "etcd://" $coordinator)) -}}
{{- fail "several nodes need a coordinator: set cluster.coordinator to etcd://host:port,..." -}}
{{- end -}}
{{- if and (or .Values.etcd.tls.existingSecret .Values.etcd.auth.existingSecret) (not (hasPrefix "etcd://" $coordinator)) -}}
{{- fail "etcd.* is what an etcd is shown, and cluster.coordinator is none" -}}
{{- end -}}
{{- if and .Values.etcd.tls.clientCertificate (not .Values.etcd.tls.existingSecret) -}}
{{- fail "the certificate that nodes show to etcd is in a secret: set etcd.tls.existingSecret" -}}
{{- end -}}
{{- if and (not .Values.clusterSecret.existingSecret) (not .Values.peerTls.existingSecret) (ne .Values.clusterSecret.auth "optional") -}}
{{- fail "any pod could act as a node: set clusterSecret.existingSecret to a secret that the nodes prove to each other, or peerTls.existingSecret" -}}
{{- end -}}
{{- if and .Values.etcd.auth.existingSecret (not .Values.etcd.tls.existingSecret) (not .Values.etcd.auth.inClear) -}}
{{- fail "the password for etcd would be sent without TLS: set etcd.tls.existingSecret, or etcd.auth.inClear=true on purpose" -}}
{{- end -}}
{{- if gt $copies (int .Values.replicas) -}}
{{- fail "cluster.copies is above replicas: a slot has at most one copy on a node" -}}
{{- end -}}
{{- if and (gt $copies 1) (ge (int .Values.maxUnavailable) $copies) -}}
{{- fail "maxUnavailable would allow all copies of a slot to go at once: keep it below cluster.copies" -}}
{{- end -}}
{{- if and .Values.auth.protectedMode (not .Values.auth.existingSecret) -}}
{{- fail "clients of other machines would be turned away: set auth.existingSecret, or auth.protectedMode=false on purpose" -}}
{{- end -}}
{{- range $name := list "dir" "port" "bind" "admin-port" "admin-bind" "requirepass" "requirepass-file" -}}
{{- if hasKey $.Values.settings $name -}}
{{- fail (printf "settings.%s is the chart's own" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := .Values.settings -}}
{{- if hasPrefix "cluster-" $name -}}
{{- fail (printf "settings.%s is the chart's own: see cluster.*, clusterSecret.*, etcd.* and peerTls.*" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
