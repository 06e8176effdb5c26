/** Renders the Job that upgrades one node exactly as the original, so that each can continue the other's Jobs. */
import { cattlePlans } from '../../../api/cattle/plan.ts';
import { apiVersionOf } from '../../../kube/resources.ts';
import type { Job, Node } from '../../../kube/types.ts';
import { parseGoDuration } from '../../../util/go-duration.ts';
import type { CattleConfig, JobSettings } from '../config.ts';
import {
  CONTROLLER_LABEL,
  EXCLUSIVE_LABEL,
  HOSTNAME_LABEL,
  hashLabelOf,
  NODE_LABEL,
  PLAN_LABEL,
  shortenedName,
  TTL_ANNOTATION,
  VERSION_LABEL,
} from '../names.ts';
import { initContainers, type Rendering, secretVolumeName, upgradeContainer } from './containers.ts';

export function jobNameOf(planName: string, nodeName: string, hash: string): string {
  return shortenedName('apply', planName, 'on', nodeName.split('.')[0] ?? '', 'with', hash);
}

/** The hostname label, or else the name of the Node. */
export function hostnameOf({ metadata }: Node): string {
  return metadata.labels?.[HOSTNAME_LABEL] ?? metadata.name;
}

/** The original creates Jobs paused and records the intent later. Here the intent is recorded first. */
export function jobOf(config: CattleConfig, rendering: Rendering): Job {
  const { plan, node, hash } = rendering;
  const { metadata, spec } = plan;
  const labels = labelsOf(config, rendering);
  const annotations = copied(metadata.annotations, 'cattle.io/', 'kubectl.kubernetes.io/');
  const ttl = ttlOf(rendering);
  const deadline = deadlineOf(spec?.jobActiveDeadlineSecs, config.job);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: jobNameOf(metadata.name, node.metadata.name, hash),
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      labels,
      annotations: { ...annotations, [TTL_ANNOTATION]: String(ttl) },
      ownerReferences: [
        {
          apiVersion: apiVersionOf(cattlePlans),
          kind: cattlePlans.kind,
          name: metadata.name,
          uid: metadata.uid ?? '',
          controller: true,
          blockOwnerDeletion: false,
        },
      ],
    },
    spec: {
      completions: 1,
      parallelism: 1,
      backoffLimit: config.job.backoffLimit,
      podReplacementPolicy: config.job.podReplacementPolicy,
      ttlSecondsAfterFinished: ttl,
      ...(deadline === undefined ? {} : { activeDeadlineSeconds: deadline }),
      template: { metadata: { labels, annotations }, spec: podSpecOf(rendering) },
    },
  };
}

function labelsOf({ name }: CattleConfig, { plan, node, version, hash }: Rendering): Record<string, string> {
  return {
    [CONTROLLER_LABEL]: name,
    [EXCLUSIVE_LABEL]: String(plan.spec?.exclusive ?? false),
    [NODE_LABEL]: node.metadata.name,
    [PLAN_LABEL]: plan.metadata.name,
    [VERSION_LABEL]: version,
    [hashLabelOf(plan.metadata.name)]: hash,
    ...copied(plan.metadata.labels, 'cattle.io/'),
  };
}

/** Without keys that contain one of `reserved`. */
function copied(
  entries: Readonly<Record<string, string>> = {},
  ...reserved: readonly string[]
): Record<string, string> {
  return Object.fromEntries(Object.entries(entries).filter(([key]) => !reserved.some((part) => key.includes(part))));
}

/** Seconds until a finished Job is deleted. */
function ttlOf({ plan, settings }: Rendering): number {
  const delay = (parseGoDuration(plan.spec?.postCompleteDelay ?? '') ?? 0) / 1e9;
  return delay > settings.ttlSecondsAfterFinish ? Math.ceil(delay) + 60 : settings.ttlSecondsAfterFinish;
}

/** Seconds; undefined means no deadline. */
export function deadlineOf(own: number | undefined, settings: JobSettings): number | undefined {
  const { activeDeadlineSeconds, activeDeadlineSecondsMax: max } = settings;
  const wanted = own === undefined || own < 0 ? activeDeadlineSeconds : own;
  if (wanted === 0) return max > 0 ? max : undefined;
  return max > 0 ? Math.min(wanted, max) : wanted;
}

function podSpecOf(rendering: Rendering): Record<string, unknown> {
  const { plan, node } = rendering;
  const { serviceAccountName, priorityClassName, imagePullSecrets, tolerations = [], upgrade } = plan.spec ?? {};
  const init = initContainers(rendering);
  return {
    hostIPC: true,
    hostPID: true,
    hostNetwork: true,
    dnsPolicy: 'ClusterFirstWithHostNet',
    restartPolicy: 'Never',
    ...(serviceAccountName === undefined ? {} : { serviceAccountName }),
    ...(priorityClassName === undefined ? {} : { priorityClassName }),
    ...(imagePullSecrets === undefined ? {} : { imagePullSecrets }),
    tolerations: [
      { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
      ...tolerations,
    ],
    affinity: affinityOf(rendering, hostnameOf(node)),
    volumes: volumesOf(rendering),
    ...(init.length === 0 ? {} : { initContainers: init }),
    containers: upgrade ? [upgradeContainer(upgrade, rendering)] : [],
  };
}

function affinityOf({ plan }: Rendering, hostname: string): unknown {
  const node = { key: HOSTNAME_LABEL, operator: 'In', values: [hostname] };
  const others = plan.spec?.exclusive
    ? { key: EXCLUSIVE_LABEL, operator: 'In', values: ['true'] }
    : { key: PLAN_LABEL, operator: 'In', values: [plan.metadata.name] };
  return {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [node] }] },
    },
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchExpressions: [others] }, topologyKey: HOSTNAME_LABEL },
      ],
    },
  };
}

function volumesOf({ plan }: Rendering): unknown[] {
  const { secrets = [], upgrade } = plan.spec ?? {};
  const ofPod = (field: string): unknown => ({
    path: field,
    fieldRef: { apiVersion: 'v1', fieldPath: `metadata.${field}` },
  });
  return [
    { name: 'host-root', hostPath: { path: '/', type: 'Directory' } },
    { name: 'pod-info', downwardAPI: { defaultMode: 0o644, items: [ofPod('labels'), ofPod('annotations')] } },
    ...secrets.map((secret) => ({
      name: secretVolumeName(secret),
      secret: {
        secretName: secret.name,
        optional: secret.ignoreUpdates ?? false,
        ...(secret.defaultMode === undefined ? {} : { defaultMode: secret.defaultMode }),
      },
    })),
    ...(upgrade?.volumes ?? []).map(({ name, source }) => ({ name, hostPath: { path: source } })),
  ];
}
