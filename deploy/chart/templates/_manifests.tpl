{{/*
Renders files of manifests/ with the values laid over them. Takes root, folder (k0s, cattle, capi, …) and files.
The files are plain manifests: `kubectl apply -k deploy/kustomize/k0s` uses the same ones.
*/}}
{{- define "refit.manifests" -}}
{{- $root := .root -}}
{{- $folder := .folder -}}
{{- range $file := .files }}
{{- $text := $root.Files.Get (printf "manifests/%s/%s" $folder $file) | replace "refit-system" $root.Release.Namespace }}
{{- range $document := regexSplit "(?m)^---$" $text -1 }}
{{- $object := fromYaml $document }}
{{- if eq (include "refit.wanted" (dict "root" $root "object" $object)) "yes" }}
{{- include "refit.labels" (dict "root" $root "object" $object) }}
{{- include "refit.overlay" (dict "root" $root "object" $object "own" (index $root.Values $folder | default dict)) }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* "yes" unless the object is switched off, or is there already and not of this release: k0s and the original
system-upgrade-controller bring some of them along. */}}
{{- define "refit.wanted" -}}
{{- $values := .root.Values -}}
{{- $kind := .object.kind -}}
{{- $metadata := .object.metadata -}}
{{- $wanted := true -}}
{{- if eq $kind "CustomResourceDefinition" }}{{ $wanted = $values.crds.install }}{{ end -}}
{{- if eq $kind "PodDisruptionBudget" }}{{ $wanted = $values.podDisruptionBudget.enabled }}{{ end -}}
{{- if eq $kind "NetworkPolicy" }}{{ $wanted = $values.networkPolicy.enabled }}{{ end -}}
{{- if and $wanted (or (has $kind (list "CustomResourceDefinition" "Namespace")) (eq $metadata.name "system-upgrade")) -}}
{{- $found := lookup .object.apiVersion $kind ($metadata.namespace | default "") $metadata.name -}}
{{- $annotations := dig "metadata" "annotations" dict ($found | default dict) -}}
{{- $release := printf "%s/%s" (get $annotations "meta.helm.sh/release-namespace") (get $annotations "meta.helm.sh/release-name") -}}
{{- $own := printf "%s/%s" .root.Release.Namespace .root.Release.Name -}}
{{- if and $found (ne $release $own) }}{{ $wanted = false }}{{ end -}}
{{- end -}}
{{- if $wanted }}yes{{ end -}}
{{- end }}

{{/* Definitions and namespaces stay after `helm uninstall`, unless crds.keep is false: with them, all Plans would go. */}}
{{- define "refit.labels" -}}
{{- $metadata := .object.metadata -}}
{{- $labels := dict "app.kubernetes.io/managed-by" .root.Release.Service "app.kubernetes.io/instance" .root.Release.Name -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $metadata "labels" (mergeOverwrite (dict) ($metadata.labels | default dict) $labels) -}}
{{- if and (has .object.kind (list "CustomResourceDefinition" "Namespace")) .root.Values.crds.keep -}}
{{- $_ := set $metadata "annotations" (dict "helm.sh/resource-policy" "keep") -}}
{{- end -}}
{{- end }}

{{- define "refit.overlay" -}}
{{- $values := .root.Values -}}
{{- $kind := .object.kind -}}
{{- if eq $kind "Deployment" }}{{ include "refit.deployment" . }}{{ end -}}
{{- if eq $kind "DaemonSet" }}{{ include "refit.daemonset" . }}{{ end -}}
{{- if has $kind (list "ClusterRoleBinding" "RoleBinding") }}{{ include "refit.subjects" . }}{{ end -}}
{{- if and (eq $kind "PodDisruptionBudget") $values.podDisruptionBudget.maxUnavailable -}}
{{- $_ := set .object.spec "maxUnavailable" $values.podDisruptionBudget.maxUnavailable -}}
{{- end -}}
{{- if and (eq $kind "NetworkPolicy") (eq .object.metadata.name "refit-ui") -}}
{{- with $values.ui.from }}{{ $_ := set (first $.object.spec.ingress) "from" . }}{{ end -}}
{{- else if eq $kind "NetworkPolicy" }}{{ include "refit.networkpolicy" . }}{{ end -}}
{{- if and (eq $kind "ServiceAccount") $values.serviceAccount.annotations -}}
{{- $_ := set .object.metadata "annotations" (mergeOverwrite (dict) (.object.metadata.annotations | default dict) $values.serviceAccount.annotations) -}}
{{- end -}}
{{- $planSecrets := .own.planSecrets -}}
{{- if and (eq $kind "Role") $planSecrets }}{{ range $rule := .object.rules }}
{{- if has "SECRET" ($rule.resourceNames | default list) }}{{ $_ := set $rule "resourceNames" $planSecrets }}{{ end -}}
{{- end }}{{ end -}}
{{- if and (eq $kind "Role") (eq .object.metadata.name "refit-health") -}}
{{- $_ := set (first .object.rules) "resourceNames" $values.health.secrets -}}
{{- end -}}
{{- if and (eq $kind "Role") (eq .object.metadata.name "refit-notify") -}}
{{- $_ := set (first .object.rules) "resourceNames" $values.notify.secrets -}}
{{- end -}}
{{- if and (eq $kind "Role") (eq .object.metadata.name "refit-silences") -}}
{{- $_ := set (first .object.rules) "resourceNames" $values.silences.secrets -}}
{{- end -}}
{{- /* Other tools look for the Lease there, wherever the chart is installed. */ -}}
{{- if eq .object.metadata.name "refit-coordinate" }}{{ $_ := set .object.metadata "namespace" "refit-system" }}{{ end -}}
{{- if and (eq $kind "Certificate") (eq .object.metadata.name "refit-ui-tls") -}}
{{- $_ := set .object.spec "secretName" $values.ui.secret -}}
{{- $_ := set .object.spec.issuerRef "name" $values.ui.issuer -}}
{{- $_ := set .object.spec "dnsNames" (concat .object.spec.dnsNames $values.ui.hosts) -}}
{{- else if eq $kind "Certificate" -}}
{{- $_ := set .object.spec "secretName" (index $values.capi.secrets .object.metadata.name) -}}
{{- $_ := set .object.spec.issuerRef "name" $values.capi.issuer -}}
{{- end -}}
{{- if has $kind (list "ServiceMonitor" "PrometheusRule") -}}
{{- $_ := set .object.metadata "labels" (mergeOverwrite .object.metadata.labels $values.monitoring.labels) -}}
{{- end -}}
{{- end }}

{{/* The image: its entry point is `refit`. */}}
{{- define "refit.image" -}}
{{- $image := .Values.image -}}
{{- $name := $image.repository -}}
{{- if $image.digest }}{{ printf "%s@%s" $name $image.digest }}
{{- else }}{{ printf "%s:%s" $name ($image.tag | default .Chart.AppVersion) }}{{ end -}}
{{- end }}

{{- define "refit.deployment" -}}
{{- $values := .root.Values -}}
{{- $own := .own -}}
{{- $_ := set .object.spec "replicas" (int $own.replicas) -}}
{{- $template := .object.spec.template -}}
{{- $pod := $template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $container "image" (include "refit.image" .root) -}}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy -}}
{{- $_ := set $container "resources" $values.resources -}}
{{- if and $values.ui.enabled (eq .object.metadata.name "refit-controller") }}{{ include "refit.ui" (dict "values" $values "pod" $pod "container" $container) }}{{ end -}}
{{- include "refit.arguments" (dict "container" $container "own" $own) -}}
{{- include "refit.jobnamespaces" (dict "container" $container "values" $values) -}}
{{- include "refit.messages" (dict "container" $container "values" $values) -}}
{{- include "refit.traces" (dict "container" $container "values" $values) -}}
{{- range $name, $value := $own.env -}}
{{- /* Instead of one of the same name: the API server takes no name twice. */ -}}
{{- $others := list -}}
{{- range $container.env }}{{ if ne .name $name }}{{ $others = append $others . }}{{ end }}{{ end -}}
{{- $_ := set $container "env" (append $others (dict "name" $name "value" $value)) -}}
{{- end -}}
{{- if eq $values.placement "Required" -}}
{{- $wish := first $pod.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution -}}
{{- $terms := dict "nodeSelectorTerms" (list $wish.preference) -}}
{{- $_ := set $pod.affinity "nodeAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" $terms) -}}
{{- end -}}
{{- range $field := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" "priorityClassName" -}}
{{- with index $values $field }}{{ $_ := set $pod $field . }}{{ end -}}
{{- end -}}
{{- with $values.podAnnotations }}{{ $_ := set $template.metadata "annotations" . }}{{ end -}}
{{- /* The labels of the chart win, because the selector of the Deployment needs them. */ -}}
{{- with $values.podLabels }}{{ $_ := set $template.metadata "labels" (mergeOverwrite (dict) . $template.metadata.labels) }}{{ end -}}
{{- range $volume := $pod.volumes -}}
{{- with index ($own.secrets | default dict) $volume.name }}{{ $_ := set $volume.secret "secretName" . }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The dashboard of `refit controller`: its options, its port and its certificate. It needs no right. */}}
{{- define "refit.ui" -}}
{{- $container := .container -}}
{{- $arguments := list "--ui-address=:8443" "--ui-cert-dir=/ui-certs" -}}
{{- range .values.ui.hosts }}{{ $arguments = append $arguments (printf "--ui-host=%s" .) }}{{ end -}}
{{- with .values.ui.tokenHeader }}{{ $arguments = append $arguments (printf "--ui-token-header=%s" .) }}{{ end -}}
{{- range .values.ui.trustedProxies }}{{ $arguments = append $arguments (printf "--ui-trusted-proxy=%s" .) }}{{ end -}}
{{- $_ := set $container "args" (concat $container.args $arguments) -}}
{{- $_ := set $container "ports" (append $container.ports (dict "name" "ui" "containerPort" 8443)) -}}
{{- $mount := dict "name" "ui-certs" "mountPath" "/ui-certs" "readOnly" true -}}
{{- $_ := set $container "volumeMounts" (append ($container.volumeMounts | default list) $mount) -}}
{{- $volume := dict "name" "ui-certs" "secret" (dict "secretName" .values.ui.secret) -}}
{{- $_ := set .pod "volumes" (append (.pod.volumes | default list) $volume) -}}
{{- end }}

{{/* The namespaces in which Jobs of policies may run. Without such a namespace the controllers keep their default. */}}
{{- define "refit.jobnamespaces" -}}
{{- $names := join "," (uniq (concat (.values.hooks.jobs | default list) (.values.health.jobs | default list))) -}}
{{- include "refit.option" (dict "container" .container "name" "job-namespaces" "value" $names) -}}
{{- end }}

{{/* What messages and the page say about the cluster: its name, and the address of the page. */}}
{{- define "refit.messages" -}}
{{- include "refit.option" (dict "container" .container "name" "cluster-name" "value" (.values.clusterName | default "")) -}}
{{- include "refit.option" (dict "container" .container "name" "ui-url" "value" (.values.ui.url | default "")) -}}
{{- end }}

{{/* Sets an option: in the arguments, or as a variable of the process that reads its options from the environment. An
empty value sets nothing. `extraArgs` and `env` of a controller win. */}}
{{- define "refit.option" -}}
{{- $container := .container -}}
{{- if eq .value "" -}}
{{- else if eq (first $container.args) "system-upgrade-controller" -}}
{{- $variable := printf "SYSTEM_UPGRADE_CONTROLLER_%s" (.name | replace "-" "_" | upper) -}}
{{- $_ := set $container "env" (append ($container.env | default list) (dict "name" $variable "value" .value)) -}}
{{- else -}}
{{- $option := printf "--%s=%s" .name .value -}}
{{- $_ := set $container "args" (concat (list (first $container.args) $option) (rest $container.args)) -}}
{{- end -}}
{{- end }}

{{/* Where traces are sent. `env` of a controller wins. */}}
{{- define "refit.traces" -}}
{{- $traces := .values.traces | default dict -}}
{{- with $traces.endpoint -}}
{{- $env := append ($.container.env | default list) (dict "name" "OTEL_EXPORTER_OTLP_ENDPOINT" "value" .) -}}
{{- with $traces.headers -}}
{{- if .secret -}}
{{- $from := dict "secretKeyRef" (dict "name" .secret "key" .key) -}}
{{- $env = append $env (dict "name" "OTEL_EXPORTER_OTLP_HEADERS" "valueFrom" $from) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $.container "env" $env -}}
{{- end -}}
{{- end }}

{{- define "refit.daemonset" -}}
{{- $values := .root.Values -}}
{{- $pod := .object.spec.template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $container "image" (include "refit.image" .root) -}}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy -}}
{{- $_ := set $container "args" .own.args -}}
{{- with $values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- with .own.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end -}}
{{- end }}

{{/* capi names the addresses of downloads: whoever chooses them chooses what runs on nodes, so there is no default. */}}
{{- define "refit.arguments" -}}
{{- $own := .own -}}
{{- $arguments := .container.args -}}
{{- if hasKey $own "payloadUrl" -}}
{{- $kept := list -}}
{{- range $arguments }}{{ if not (regexMatch "^--(payload|checksum)-url=" .) }}{{ $kept = append $kept . }}{{ end }}{{ end -}}
{{- $payload := required "capi.payloadUrl is not set: give the URL of a version, with {version}, {os} and {arch}" $own.payloadUrl -}}
{{- $arguments = append $kept (printf "--payload-url=%s" $payload) -}}
{{- with $own.checksumUrl }}{{ $arguments = append $arguments (printf "--checksum-url=%s" .) }}{{ end -}}
{{- end -}}
{{- if $own.workloadClusters }}{{ $arguments = append $arguments "--workload-clusters" }}{{ end -}}
{{- $_ := set .container "args" (concat $arguments ($own.extraArgs | default list)) -}}
{{- end }}

{{/* People: the users refit-viewer, refit-operator and refit-approver of the files stand for the subjects of the values. */}}
{{- define "refit.subjects" -}}
{{- $values := .root.Values -}}
{{- $subjects := list -}}
{{- range $subject := .object.subjects -}}
{{- $people := dict "refit-viewer" $values.viewers "refit-operator" $values.operators "refit-approver" $values.approvers -}}
{{- if and (eq $subject.kind "User") (hasKey $people $subject.name) }}{{ $subjects = concat $subjects (index $people $subject.name) }}
{{- else }}{{ $subjects = append $subjects $subject }}{{ end -}}
{{- end -}}
{{- $_ := set .object "subjects" ($subjects | default list) -}}
{{- end }}

{{- define "refit.networkpolicy" -}}
{{- $policy := .root.Values.networkPolicy -}}
{{- $ports := list -}}
{{- range $policy.egressPorts }}{{ $ports = append $ports (int .) }}{{ end -}}
{{- $traces := .root.Values.traces | default dict -}}
{{- with $traces.endpoint -}}
{{- $own := regexFind "[0-9]+$" (regexFind ":[0-9]+$" (urlParse .).host) -}}
{{- $ports = append $ports (int ($own | default (ternary "443" "80" (hasPrefix "https:" .)))) -}}
{{- end -}}
{{- $rules := list -}}
{{- range uniq $ports }}{{ $rules = append $rules (dict "protocol" "TCP" "port" .) }}{{ end -}}
{{- $_ := set (index .object.spec.egress 1) "ports" $rules -}}
{{- with $policy.metricsFrom }}{{ $_ := set (first $.object.spec.ingress) "from" . }}{{ end -}}
{{- end }}

{{/* The service accounts of the controllers that are enabled, as a list in YAML. */}}
{{- define "refit.accounts" -}}
{{- if .Values.k0s.enabled }}
- { kind: ServiceAccount, name: refit-controller, namespace: {{ .Release.Namespace }} }
{{- end }}
{{- if .Values.cattle.enabled }}
- { kind: ServiceAccount, name: system-upgrade, namespace: system-upgrade }
{{- end }}
{{- if .Values.capi.enabled }}
- { kind: ServiceAccount, name: refit-capi, namespace: {{ .Release.Namespace }} }
{{- end }}
{{- end }}

{{/* Rights for hooks of policies, for the account of each controller that is enabled. */}}
{{- define "refit.hooks" -}}
{{- $values := .Values.hooks -}}
{{- $subjects := fromYamlArray (include "refit.accounts" .) -}}
{{- if $subjects }}
{{- range $values.jobs }}
{{- include "refit.right" (dict "name" "refit-hooks" "namespace" . "subjects" $subjects "rule" (dict "apiGroups" (list "batch") "resources" (list "jobs") "verbs" (list "get" "create"))) }}
{{- end }}
{{- end }}
{{- if $values.secrets }}
{{- $rule := dict "apiGroups" (list "") "resources" (list "secrets") "resourceNames" $values.secrets "verbs" (list "get") -}}
{{- range $subject := $subjects }}
{{- $ofNamespace := list -}}
{{- range $subjects }}{{ if eq .namespace $subject.namespace }}{{ $ofNamespace = append $ofNamespace . }}{{ end }}{{ end -}}
{{- if eq $subject.name (first $ofNamespace).name }}
{{- include "refit.right" (dict "name" "refit-hook-secrets" "namespace" $subject.namespace "subjects" $ofNamespace "rule" $rule) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A Role with one rule in a namespace, and its RoleBinding. Takes name, namespace, rule and subjects. */}}
{{- define "refit.right" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
rules: [{{ toJson .rule }}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .name }} }
subjects: {{ toJson .subjects }}
{{- end }}

{{/* Rights for health checks of policies, for the account of each controller that is enabled. */}}
{{- define "refit.health" -}}
{{- $subjects := fromYamlArray (include "refit.accounts" .) -}}
{{- if and .Values.health.resources $subjects }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: refit-health
rules:
{{- range .Values.health.resources }}
  - apiGroups: {{ toJson .apiGroups }}
    resources: {{ toJson .resources }}
    verbs: [list]
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: refit-health
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: refit-health }
subjects: {{ toJson $subjects }}
{{- end }}
{{- if $subjects }}
{{- range .Values.health.jobs }}
{{- include "refit.right" (dict "name" "refit-health-jobs" "namespace" . "subjects" $subjects "rule" (dict "apiGroups" (list "batch") "resources" (list "jobs") "verbs" (list "get" "create" "delete"))) }}
{{- end }}
{{- end }}
{{- end }}
