{{/* The labels of every object. Selectors have other ones, which never change. */}}
{{- define "kubevirt-coschedule.labels" -}}
app.kubernetes.io/name: kubevirt-coschedule
app.kubernetes.io/part-of: kubevirt-coschedule
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
The objects of a file in files/, which the manifests have, too, in the namespaces and with the labels of the release.
In: a list of the chart's context and the file.
*/}}
{{- define "kubevirt-coschedule.objects" -}}
{{- $root := index . 0 }}
{{- $namespace := $root.Release.Namespace }}
{{- $text := $root.Files.Get (print "files/" (index . 1)) }}
{{- range $index, $document := regexSplit "(?m)^---$" $text -1 }}
{{- $object := fromYaml $document }}
{{- with $object.metadata }}
{{- if .namespace }}
{{- $_ := set . "namespace" (ternary $root.Values.longhorn.namespace $namespace (eq .namespace "longhorn-system")) }}
{{- end }}
{{- $_ := set . "labels" (include "kubevirt-coschedule.labels" $root | fromYaml | merge (.labels | default dict)) }}
{{- end }}
{{- range $object.subjects }}
{{- $_ := set . "namespace" $namespace }}
{{- if eq .name "kubevirt-coschedule" }}{{ $_ := set . "name" $root.Values.webhook.serviceAccount.name }}{{ end }}
{{- end }}
{{- if and (eq $object.kind "ServiceAccount") (eq $object.metadata.name "kubevirt-coschedule") }}
{{- $_ := set $object.metadata "name" $root.Values.webhook.serviceAccount.name }}
{{- with $root.Values.webhook.serviceAccount.annotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end }}
{{- end }}
{{- if $index }}
---
{{ end }}
{{- toYaml $object }}
{{- end }}
{{- end }}

{{/* A word that may be `off`: YAML reads an off without quotes as false. */}}
{{- define "kubevirt-coschedule.word" -}}
{{ ternary "off" . (eq (toString .) "false") }}
{{- end }}

{{/* The Secret with the certificate that the webhook serves. */}}
{{- define "kubevirt-coschedule.secret" -}}
{{- with .Values.certificates }}
{{- if ne .issuer "existing" }}kubevirt-coschedule-tls
{{- else }}{{ required "certificates.issuer is existing, but certificates.existing.secret is empty. Name the Secret with tls.crt and tls.key." .existing.secret }}
{{- end }}
{{- end }}
{{- end }}

{{/* What the specs of all pods have in common. */}}
{{- define "kubevirt-coschedule.pod" -}}
enableServiceLinks: false
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
nodeSelector:
  {{- toYaml .Values.nodeSelector | nindent 2 }}
securityContext:
  {{- $context := .Values.podSecurityContext }}
  {{- if .Values.openshift.enabled }}
  {{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" }}
  {{- end }}
  {{- toYaml $context | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all containers have in common. */}}
{{- define "kubevirt-coschedule.container" -}}
{{- with .Values.image }}
image: {{ if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end }}

{{/* What all entries of the MutatingWebhookConfiguration have in common. In: `path`, and `root`, the chart's context. */}}
{{- define "kubevirt-coschedule.entry" -}}
admissionReviewVersions: [v1]
clientConfig:
  service:
    name: kubevirt-coschedule
    namespace: {{ .root.Release.Namespace }}
    path: {{ .path }}
    port: 443
  {{- with .root.Values.certificates }}
  {{- if and (eq .issuer "existing") .existing.ca }}
  caBundle: {{ b64enc .existing.ca }}
  {{- end }}
  {{- end }}
failurePolicy: Ignore
sideEffects: None
matchPolicy: Equivalent
rules:
  - apiGroups: [""]
    apiVersions: [v1]
    resources: [pods]
    operations: [CREATE]
    scope: Namespaced
{{- end }}

{{/* Pods of VMs that start. */}}
{{- define "kubevirt-coschedule.starts" -}}
matchLabels:
  kubevirt.io: virt-launcher
matchExpressions:
  - key: kubevirt.io/migrationJobUID
    operator: DoesNotExist
{{- end }}

{{/* Pods with the annotation, and pods without it. */}}
{{- define "kubevirt-coschedule.annotated" -}}
- name: asks-for-co-schedule
  expression: >-
    has(object.metadata.annotations) && ('kubevirt-scheduler/decision' in object.metadata.annotations
    || 'kubevirt-scheduler/written' in object.metadata.annotations
    || 'kubevirt-scheduler/co-schedule' in object.metadata.annotations
    && object.metadata.annotations['kubevirt-scheduler/co-schedule'] != 'false')
{{- end }}
{{- define "kubevirt-coschedule.notAnnotated" -}}
- name: has-no-annotation
  expression: >-
    !(has(object.metadata.annotations) && 'kubevirt-scheduler/co-schedule' in object.metadata.annotations)
    || 'kubevirt-scheduler/written' in object.metadata.annotations
    && object.metadata.annotations['kubevirt-scheduler/written'].contains('"by":')
{{- end }}

{{/* The namespaces with the label that opts VMs in, and those without it. */}}
{{- define "kubevirt-coschedule.labelled" -}}
{{ include "kubevirt-coschedule.otherNamespaces" . }}
  - key: kubevirt-scheduler/co-schedule
    operator: Exists
  - key: kubevirt-scheduler/co-schedule
    operator: NotIn
    values: ["false"]
{{- end }}
{{- define "kubevirt-coschedule.notLabelled" -}}
{{ include "kubevirt-coschedule.otherNamespaces" . }}
  - key: kubevirt-scheduler/co-schedule
    operator: DoesNotExist
{{- end }}

{{/* The namespaces whose pods never wait for the webhook. */}}
{{- define "kubevirt-coschedule.otherNamespaces" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: [{{ .Release.Namespace }}, kube-system]
{{- end }}
