{{/* The name of the objects, and what their names begin with. */}}
{{- define "kubevirt-coschedule.name" -}}
{{ .Values.fullnameOverride | default .Values.nameOverride | default "kubevirt-coschedule" }}
{{- end }}

{{/* The namespace of the objects. */}}
{{- define "kubevirt-coschedule.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{/* The name of a part's service account. In: the chart's context, the part's values, and the suffix of its names. */}}
{{- define "kubevirt-coschedule.account" -}}
{{- $account := (index . 1).serviceAccount }}
{{- if not (or $account.create $account.name) }}{{ fail "serviceAccount.create is false, and serviceAccount.name is empty. Name the account." }}{{ end }}
{{- $account.name | default (print (include "kubevirt-coschedule.name" (index . 0)) (index . 2)) }}
{{- end }}

{{/* The service account of a part. In: as above, and its component. */}}
{{- define "kubevirt-coschedule.serviceAccount" -}}
{{- $account := (index . 1).serviceAccount }}
{{- if $account.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "kubevirt-coschedule.account" . | toYaml }}
  namespace: {{ include "kubevirt-coschedule.namespace" (index . 0) | toYaml }}
  labels:
    {{- include "kubevirt-coschedule.labels" (list (index . 0) (index . 3)) | nindent 4 }}
  {{- with $account.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false # pods that need the token set this in their own spec
---
{{- end }}
{{- end }}

{{/* What a binding binds, and to whom. In: as `account`, the kind of the role, and its name. */}}
{{- define "kubevirt-coschedule.bound" -}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ index . 3 }}
  name: {{ index . 4 | toYaml }}
subjects:
  - kind: ServiceAccount
    name: {{ include "kubevirt-coschedule.account" . | toYaml }}
    namespace: {{ include "kubevirt-coschedule.namespace" (index . 0) | toYaml }}
{{- end }}

{{/*
Whose requests a policy confines. In: as `account`. The manifests match the last part of the username, because kustomize can
give the account a prefix, a suffix and another namespace. The name of the webhook's account is in that of the others.
*/}}
{{- define "kubevirt-coschedule.byAccount" -}}
{{- $root := index . 0 }}
{{- if ne $root.Values.creator "static" -}}
request.userInfo.username == 'system:serviceaccount:{{ include "kubevirt-coschedule.namespace" $root }}:{{ include "kubevirt-coschedule.account" . }}'
{{- else -}}
request.userInfo.username.matches('^system:serviceaccount:[^:]+:[^:]*kubevirt-coschedule{{ index . 2 }}[^:]*$')
{{- if not (index . 2) }} &&
!request.userInfo.username.matches('^system:serviceaccount:[^:]+:[^:]*kubevirt-coschedule-(certs|reunite)[^:]*$')
{{- end }}
{{- end }}
{{- end }}

{{/* The labels of every object, and those of a component. Selectors have other ones, which never change. */}}
{{- define "kubevirt-coschedule.labels" -}}
{{- $root := index . 0 -}}
{{- with index . 1 }}app.kubernetes.io/component: {{ . }}
{{ end -}}
app.kubernetes.io/name: kubevirt-coschedule
app.kubernetes.io/part-of: kubevirt-coschedule
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
{{- if ne $root.Values.creator "static" }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}
{{- with $root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A word that may be `off`: YAML reads an off without quotes as false. */}}
{{- define "kubevirt-coschedule.word" -}}
{{ ternary "off" . (eq (toString .) "false") }}
{{- end }}

{{/* The Secret with the certificate that the webhook serves. */}}
{{- define "kubevirt-coschedule.secret" -}}
{{- with .Values.certificates }}
{{- if ne .issuer "existing" }}{{ include "kubevirt-coschedule.name" $ }}-tls
{{- else }}{{ required "certificates.issuer is existing, but certificates.existing.secret is empty. Name the Secret with tls.crt and tls.key." .existing.secret }}
{{- end }}
{{- end }}
{{- end }}

{{/* The metadata of a part's pods. In: the chart's context, the part's values, and its component. */}}
{{- define "kubevirt-coschedule.podMetadata" -}}
labels:
  app.kubernetes.io/name: kubevirt-coschedule
  app.kubernetes.io/component: {{ index . 2 }}
  {{- with merge dict (index . 1).podLabels (index . 0).Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  kubectl.kubernetes.io/default-container: {{ index . 2 }}
  {{- with merge dict (index . 1).podAnnotations (index . 0).Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/*
What the specs of all pods have in common. In: the chart's context and the part's values. No pod names a user or a group: the
image's USER is a number, and OpenShift chooses one.
*/}}
{{- define "kubevirt-coschedule.pod" -}}
{{- $values := (index . 0).Values }}
{{- $part := index . 1 -}}
enableServiceLinks: false # the pod uses no variables for the Services of the namespace
{{- with $values.priorityClassName }}
priorityClassName: {{ . | toYaml }}
{{- end }}
nodeSelector:
  {{- toYaml (merge dict $part.nodeSelector $values.nodeSelector) | nindent 2 }}
securityContext:
  {{- toYaml $values.podSecurityContext | nindent 2 }}
{{- with concat $values.global.imagePullSecrets $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.dnsPolicy | default $values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with $part.dnsConfig | default $values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The affinity, tolerations and volumes of a part that has none of its own. In: as above. */}}
{{- define "kubevirt-coschedule.placing" -}}
{{- $part := index . 1 }}
{{- with $part.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat $part.tolerations (index . 0).Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.extraVolumes }}
volumes:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all containers have in common. In: as above; the pod of `helm test` is no part. */}}
{{- define "kubevirt-coschedule.container" -}}
{{- $values := (index . 0).Values }}
{{- with $values.image }}
{{- $repository := ternary (print .registry "/" .repository) .repository (ne .registry "") -}}
image: {{ print $repository (ternary (print ":" (.tag | default (index $ 0).Chart.AppVersion)) (print "@" .digest) (empty .digest)) | toYaml }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
securityContext:
  {{- toYaml $values.securityContext | nindent 2 }}
{{- with (index . 1).extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A probe of the health port. In: path, and times. */}}
{{- define "kubevirt-coschedule.probe" -}}
httpGet:
  path: {{ index . 0 }}
  port: health
{{ toYaml (index . 1) }}
{{- end }}

{{/* What all entries of the MutatingWebhookConfiguration have in common. In: the chart's context, path and seconds. */}}
{{- define "kubevirt-coschedule.entry" -}}
{{- $root := index . 0 -}}
admissionReviewVersions: [v1]
clientConfig:
  service:
    name: {{ include "kubevirt-coschedule.name" $root | toYaml }}
    namespace: {{ include "kubevirt-coschedule.namespace" $root | toYaml }}
    path: {{ index . 1 }}
    port: 443
  {{- with $root.Values.certificates }}
  {{- if and (eq .issuer "existing") .existing.ca }}
  caBundle: {{ b64enc .existing.ca }}
  {{- end }}
  {{- end }}
failurePolicy: Ignore # a VM on another node is slower; a VM that does not start is down
timeoutSeconds: {{ index . 2 }}
sideEffects: None
reinvocationPolicy: IfNeeded # decides again if another webhook adds an affinity or a volume
matchPolicy: Equivalent
rules:
  - apiGroups: [""]
    apiVersions: [v1]
    resources: [pods]
    operations: [CREATE]
    scope: Namespaced
{{- end }}

{{/*
An entry for pods of VMs that start. In: the chart's context, the requirements on the Namespace beside the common ones, and
whether the pod has the annotation. The target of a live migration must not run where its source runs, and virt-controller
creates it under a lock: so the API server does not call the webhook for it. In the expressions has() is there because one
that fails counts as a failed call.
*/}}
{{- define "kubevirt-coschedule.starts" -}}
{{- $root := index . 0 -}}
{{ include "kubevirt-coschedule.entry" (list $root "/mutate/virt-launcher" $root.Values.webhook.timeoutSeconds.virtLauncher) }}
namespaceSelector:
  {{- with $root.Values.webhook.namespaceSelector.matchLabels }}
  matchLabels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  matchExpressions:
    - key: kubernetes.io/metadata.name # pods of the webhook and of the control plane never wait for the webhook
      operator: NotIn
      values: [{{ include "kubevirt-coschedule.namespace" $root | toYaml }}, kube-system]
    {{- with concat (index . 1) ($root.Values.webhook.namespaceSelector.matchExpressions | default list) }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
objectSelector:
  matchLabels:
    kubevirt.io: virt-launcher
  matchExpressions:
    - key: kubevirt.io/migrationJobUID
      operator: DoesNotExist
matchConditions:
  {{- if index . 2 }}
  # A pod with "false" is sent only if it has an annotation of this webhook: another webhook wrote "false" after this
  # webhook's answer, or a user copied the annotation. Then this webhook removes what is wrong.
  - name: asks-for-co-schedule
    expression: >-
      has(object.metadata.annotations) && ('kubevirt-scheduler/decision' in object.metadata.annotations
      || 'kubevirt-scheduler/written' in object.metadata.annotations
      || 'kubevirt-scheduler/co-schedule' in object.metadata.annotations
      && object.metadata.annotations['kubevirt-scheduler/co-schedule'] != 'false')
  {{- else }}
  # The API server asks about a changed pod again, but only an entry that it called before. So a pod is also sent if this
  # entry wrote into it ("by" in the record), whatever annotation the pod has got since.
  - name: has-no-annotation
    expression: >-
      !(has(object.metadata.annotations) && 'kubevirt-scheduler/co-schedule' in object.metadata.annotations)
      || 'kubevirt-scheduler/written' in object.metadata.annotations
      && object.metadata.annotations['kubevirt-scheduler/written'].contains('"by":')
  {{- end }}
{{- end }}

{{/* What a policy of writes is, but for its rules. In: the resources, the operations, and as `account`. */}}
{{- define "kubevirt-coschedule.confined" -}}
failurePolicy: Fail # an error here refuses only the writes of this account: no VM depends on them
matchConstraints: # one field to the API server: without its defaults, apply --server-side after an apply is a conflict
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [{{ index . 0 | quote }}]
      apiVersions: ["*"]
      resources: [{{ index . 1 }}]
      operations: [{{ index . 2 }}] # RBAC refuses the other ones
      scope: "*"
matchConditions:
  - name: by-the-account
    expression: >-
      {{- include "kubevirt-coschedule.byAccount" (slice . 3) | nindent 6 }}
{{- end }}

{{/* The binding of the policy with this name and component. */}}
{{- define "kubevirt-coschedule.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ index . 1 }}
  labels:
    {{- include "kubevirt-coschedule.labels" (list (index . 0) (index . 2)) | nindent 4 }}
spec:
  policyName: {{ index . 1 }}
  validationActions: [Deny]
{{- end }}

{{/*
The policy for the Events of an account: Events of this program, about a VirtualMachineInstance. In: the chart's context, the
name of the policy, its component, the part's values, and the suffix of its names.
*/}}
{{- define "kubevirt-coschedule.eventPolicy" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ index . 1 }}
  labels:
    {{- include "kubevirt-coschedule.labels" (list (index . 0) (index . 2)) | nindent 4 }}
spec:
  {{- include "kubevirt-coschedule.confined" (list "" "events" "CREATE" (index . 0) (index . 3) (index . 4)) | nindent 2 }}
  validations:
    - message: this account may create only Events about a VirtualMachineInstance
      expression: >-
        object.involvedObject.?kind.orValue('') == 'VirtualMachineInstance' &&
        object.involvedObject.?apiVersion.orValue('').startsWith('kubevirt.io/') &&
        object.involvedObject.?namespace.orValue('') == object.metadata.namespace
    - message: this account may create only Events of the component kubevirt-coschedule
      expression: >-
        object.?source.component.orValue('') == 'kubevirt-coschedule' && !has(object.source.host) &&
        object.?reportingComponent.orValue('') == 'kubevirt-coschedule'
    - message: this account may create no Event with ownerReferences or finalizers
      expression: "!has(object.metadata.ownerReferences) && !has(object.metadata.finalizers)"
---
{{ include "kubevirt-coschedule.policyBinding" (list (index . 0) (index . 1) (index . 2)) }}
{{- end }}
