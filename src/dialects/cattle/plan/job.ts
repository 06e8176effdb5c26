/**
 * Renders the Job for one node exactly as the original controller does. So Refit can continue Jobs of the original, and
 * the original can continue Jobs of Refit.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { ContainerSpec, DrainSpec, SecretSpec } from '../../../api/cattle/workload.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { COMMON_PREFIX } from '../../../engine/model/controls.ts';
import { apiVersionOf, type Job, type Node } from '../../../kube/resources.ts';
import { selectorText } from '../../../kube/selectors.ts';
import { formatGoDuration, parseGoDuration } from '../../../util/duration.ts';
import { defined } from '../../../util/json.ts';
import { scalarText } from '../../../util/scalar-text.ts';
import { type CattleConfig, deadlineOf, type JobSettings } from './config.ts';
import { leaderDrains } from './leader-drain.ts';
import * as names from './names.ts';
import { stamped } from './stamps.ts';

/**
 * Returns two names for a Job. The first is the name that the original controller uses. It contains the name of the
 * node only up to the first dot, so several nodes may have the same first name. The second contains the whole name of
 * the node.
 */
export function jobNamesOf(
  planName: string,
  nodeName: string,
  hash: string,
): readonly [string, string] {
  const nameOf = (node: string): string =>
    names.shortenedName('apply', planName, 'on', node, 'with', hash);
  return [nameOf(nodeName.split('.')[0] ?? ''), nameOf(nodeName)];
}

/** Returns the hostname label of the Node, or its name if it has no such label. */
export function hostnameOf({ metadata }: Node): string {
  return metadata.labels?.[names.HOSTNAME_LABEL] ?? metadata.name;
}

/**
 * Returns the Job. It is not paused, because Refit records the intent before it creates the Job. The original creates its Jobs
 * paused and records the intent afterwards.
 */
export function jobOf(config: CattleConfig, rendering: Rendering): Job {
  const { plan, node, hash } = rendering;
  const { metadata, spec } = plan;
  const labels = labelsOf(config, rendering);
  const annotations = copied(
    metadata.annotations,
    'cattle.io/',
    'kubectl.kubernetes.io/',
    COMMON_PREFIX,
  );
  const ttl = ttlOf(rendering);
  const isLeaders = leaderDrains(plan, rendering.settings);
  const held = isLeaders ? { [names.HELD_ANNOTATION]: 'true' } : {};
  const deadline = deadlineOf(spec?.jobActiveDeadlineSecs, config.job);
  const { name, namespace, uid = '' } = metadata;
  const owner = { apiVersion: apiVersionOf(cattlePlans), kind: cattlePlans.kind, name, uid };
  const job: Job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: rendering.name ?? jobNamesOf(name, node.metadata.name, hash)[0],
      ...defined({ namespace }),
      labels,
      annotations: { ...annotations, [names.TTL_ANNOTATION]: String(ttl), ...held },
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: false }],
    },
    spec: {
      completions: 1,
      parallelism: 1,
      backoffLimit: config.job.backoffLimit,
      podReplacementPolicy: config.job.podReplacementPolicy,
      ttlSecondsAfterFinished: ttl,
      ...(isLeaders ? { suspend: true } : {}),
      ...defined({ activeDeadlineSeconds: deadline }),
      template: { metadata: { labels, annotations }, spec: podSpecOf(rendering) },
    },
  };
  return stamped(job, config.name, plan);
}

function labelsOf(
  { name }: CattleConfig,
  { plan, node, version, hash }: Rendering,
): Record<string, string> {
  return {
    [names.CONTROLLER_LABEL]: name,
    [names.EXCLUSIVE_LABEL]: String(plan.spec?.exclusive ?? false),
    [names.NODE_LABEL]: node.metadata.name,
    [names.PLAN_LABEL]: plan.metadata.name,
    [names.VERSION_LABEL]: version,
    [names.hashLabelOf(plan.metadata.name)]: hash,
    ...copied(plan.metadata.labels, 'cattle.io/'),
  };
}

function copied(
  entries: Record<string, string> = {},
  ...reserved: readonly string[]
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(entries).filter(([key]) => !reserved.some((part) => key.includes(part))),
  );
}

/** Returns the seconds after which Kubernetes deletes a finished Job. */
export function ttlOf({ plan, settings }: Pick<Rendering, 'plan' | 'settings'>): number {
  const delay = (parseGoDuration(plan.spec?.postCompleteDelay ?? '') ?? 0) / 1e9;
  return delay > settings.ttlSecondsAfterFinish
    ? Math.ceil(delay) + 60
    : settings.ttlSecondsAfterFinish;
}

/** The toleration of a cordon. */
export const CORDONED = {
  key: 'node.kubernetes.io/unschedulable',
  operator: 'Exists',
  effect: 'NoSchedule',
};

function podSpecOf(rendering: Rendering): Record<string, unknown> {
  const { plan } = rendering;
  const {
    serviceAccountName,
    priorityClassName,
    imagePullSecrets,
    tolerations = [],
    upgrade,
  } = plan.spec ?? {};
  const init = initContainers(rendering);
  return {
    hostIPC: true,
    hostPID: true,
    hostNetwork: true,
    dnsPolicy: 'ClusterFirstWithHostNet',
    restartPolicy: 'Never',
    ...defined({ serviceAccountName, priorityClassName, imagePullSecrets }),
    tolerations: [CORDONED, ...tolerations],
    affinity: affinityOf(rendering),
    volumes: volumesOf(rendering),
    ...(init.length === 0 ? {} : { initContainers: init }),
    containers: upgrade ? [upgradeContainer(upgrade, rendering)] : [],
  };
}

function affinityOf({ plan, node }: Rendering): unknown {
  const others = plan.spec?.exclusive
    ? { key: names.EXCLUSIVE_LABEL, operator: 'In', values: ['true'] }
    : { key: names.PLAN_LABEL, operator: 'In', values: [plan.metadata.name] };
  const apart = {
    labelSelector: { matchExpressions: [others] },
    topologyKey: names.HOSTNAME_LABEL,
  };
  return {
    nodeAffinity: onHost(node),
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] },
  };
}

/** Returns the affinity that lets a pod run only on this node. */
export function onHost(node: Node): unknown {
  const host = { key: names.HOSTNAME_LABEL, operator: 'In', values: [hostnameOf(node)] };
  const nodeSelectorTerms = [{ matchExpressions: [host] }];
  return { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
}

/** The mount of the root of the node in each container of a Job. `name` is the name of the volume. */
export const HOST_ROOT = { name: 'host-root', mountPath: '/host' };
/** The mount of the labels and annotations of the pod in each container of a Job. `name` is the name of the volume. */
export const POD_INFO = { name: 'pod-info', mountPath: '/run/system-upgrade/pod' };

function volumesOf({ plan }: Rendering): unknown[] {
  const { secrets = [], upgrade } = plan.spec ?? {};
  const ofPod = (path: string): unknown => ({
    path,
    fieldRef: { apiVersion: 'v1', fieldPath: `metadata.${path}` },
  });
  return [
    { name: HOST_ROOT.name, hostPath: { path: '/', type: 'Directory' } },
    {
      name: POD_INFO.name,
      downwardAPI: { defaultMode: 0o644, items: [ofPod('labels'), ofPod('annotations')] },
    },
    ...secrets.map(({ name, ignoreUpdates: optional = false, defaultMode }) => ({
      name: names.shortenedName('secret', name),
      secret: defined({ secretName: name, optional, defaultMode }),
    })),
    ...(upgrade?.volumes ?? []).map(({ name, source }) => ({ name, hostPath: { path: source } })),
  ];
}

/** The work that a Job does. */
export interface JobWork {
  /**
   * The name of the Job. If it is undefined, the Job has the name that the original would give it.
   */
  readonly name?: string | undefined;
  readonly plan: CattlePlan;
  readonly node: Node;
  readonly version: string;
  readonly hash: string;
}

/** A Job to be rendered with the settings of a controller. */
export interface Rendering extends JobWork {
  readonly settings: JobSettings;
}

type Container = Readonly<Record<string, unknown>>;

export function initContainers(rendering: Rendering): Container[] {
  const { plan, node, settings } = rendering;
  const { prepare, drain, cordon, upgrade } = plan.spec ?? {};
  const { name } = node.metadata;
  // Windows nodes have an image of their own, which may be empty.
  const image = isWindows(node) ? settings.kubectlImageWindows : settings.kubectlImage;
  const kubectl = { image, volumes: upgrade?.volumes ?? [] };
  const host = windowsContext(node);
  const containers: Container[] = [];
  if (prepare)
    containers.push(
      container('prepare', tagged(prepare, rendering), rendering, host ?? prepare.securityContext),
    );
  if (leaderDrains(plan, settings)) return containers;
  if (drain)
    containers.push(
      container('drain', { ...kubectl, args: drainArguments(drain, name) }, rendering, host),
    );
  else if (cordon === true)
    containers.push(container('cordon', { ...kubectl, args: ['cordon', name] }, rendering, host));
  return containers;
}

export function upgradeContainer(upgrade: ContainerSpec, rendering: Rendering): Container {
  const { privileged } = rendering.settings;
  const standard = windowsContext(rendering.node) ?? {
    privileged,
    capabilities: { add: ['CAP_SYS_BOOT'] },
  };
  return container(
    'upgrade',
    tagged(upgrade, rendering),
    rendering,
    upgrade.securityContext ?? standard,
  );
}

function container(
  name: string,
  spec: ContainerSpec,
  rendering: Rendering,
  securityContext: unknown,
): Container {
  const { plan, settings } = rendering;
  const { image, command, args, envFrom } = spec;
  return {
    name,
    image,
    ...defined({ command, args }),
    env: environment(spec, rendering),
    ...defined({ envFrom }),
    volumeMounts: [
      HOST_ROOT,
      { ...POD_INFO, readOnly: true },
      ...(plan.spec?.secrets ?? []).map(secretMount),
      ...(spec.volumes ?? []).map((volume) => ({
        name: volume.name,
        mountPath: volume.destination,
      })),
    ],
    ...defined({ securityContext }),
    imagePullPolicy: settings.imagePullPolicy,
  };
}

function tagged(spec: ContainerSpec, { version }: Rendering): ContainerSpec {
  return { ...spec, image: withLatestTag(spec.image, version) };
}

function environment({ envs = [] }: ContainerSpec, { plan, version, hash }: Rendering): unknown[] {
  const fromPod = (name: string, fieldPath: string): unknown => ({
    name,
    valueFrom: { fieldRef: { fieldPath } },
  });
  return [
    fromPod('SYSTEM_UPGRADE_NODE_NAME', 'spec.nodeName'),
    fromPod('SYSTEM_UPGRADE_POD_NAME', 'metadata.name'),
    fromPod('SYSTEM_UPGRADE_POD_UID', 'metadata.uid'),
    ...envs,
    { name: 'SYSTEM_UPGRADE_PLAN_NAME', value: plan.metadata.name },
    { name: 'SYSTEM_UPGRADE_PLAN_LATEST_HASH', value: hash },
    { name: 'SYSTEM_UPGRADE_PLAN_LATEST_VERSION', value: version },
  ];
}

function secretMount(secret: SecretSpec): unknown {
  const name = names.shortenedName('secret', secret.name);
  return { name, mountPath: mountPathOf(secret), readOnly: true };
}

/** Returns where a Secret is mounted in each container of a Job. */
export function mountPathOf({ name, path }: SecretSpec): string {
  return path.startsWith('/') ? path : `/run/system-upgrade/secrets/${path === '' ? name : path}`;
}

export function isWindows({ metadata: { labels } }: Node): boolean {
  return labels?.['kubernetes.io/os'] === 'windows';
}

function windowsContext(node: Node): unknown {
  if (!isWindows(node)) return undefined;
  return { windowsOptions: { hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM' } };
}

/** Returns the arguments of `kubectl drain`. The selector always excludes the pods of Jobs and of the controller. */
export function drainArguments(drain: DrainSpec, nodeName: string): string[] {
  const {
    deleteLocalData = true,
    deleteEmptydirData = true,
    ignoreDaemonSets = true,
    timeout,
  } = drain;
  const { skipWaitForDeleteTimeout = 0, gracePeriod } = drain;
  const flags: readonly [boolean, ...string[]][] = [
    [ignoreDaemonSets, '--ignore-daemonsets'],
    [deleteLocalData && deleteEmptydirData, '--delete-emptydir-data'],
    [drain.force === true, '--force'],
    [
      timeout !== undefined,
      '--timeout',
      typeof timeout === 'number' ? formatGoDuration(timeout) : scalarText(timeout),
    ],
    [gracePeriod !== undefined, '--grace-period', String(gracePeriod)],
    [drain.disableEviction === true, '--disable-eviction=true'],
    [
      skipWaitForDeleteTimeout > 0,
      '--skip-wait-for-delete-timeout',
      String(skipWaitForDeleteTimeout),
    ],
  ];
  const selector = selectorText(drain.podSelector ?? {}, `!${names.CONTROLLER_LABEL}`);
  const given = flags.flatMap(([isGiven, ...texts]) => (isGiven ? texts : []));
  return ['drain', nodeName, '--pod-selector', selector, ...given];
}

/** Matches an image reference without tag and digest. It has a colon only before the port of a host. */
const REPOSITORY = /^(?:[A-Za-z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$/;

/** Adds the version as a tag to the image, unless the image has a tag or digest or is not a valid reference. */
export function withLatestTag(image: string, version: string): string {
  if (!REPOSITORY.test(image) || !/^[\w][\w.-]{0,127}$/.test(version)) return image;
  const path = image.replace(/^(?:index\.)?docker\.io\//, '');
  return `${path.replace(/^library\/(?=[^/]+$)/, '')}:${version}`;
}
