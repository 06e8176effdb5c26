/** Renders the containers of a Job's pod exactly as the original. */

import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { ContainerSpec, DrainSpec, SecretSpec } from '../../../api/cattle/workload.ts';
import type { Node } from '../../../kube/types.ts';
import { formatGoDuration } from '../../../util/go-duration.ts';
import type { JobSettings } from '../config.ts';
import { CONTROLLER_LABEL, shortenedName } from '../names.ts';
import { selectorText } from '../selector-text.ts';

export interface Rendering {
  readonly plan: CattlePlan;
  readonly node: Node;
  readonly version: string;
  readonly hash: string;
  readonly settings: JobSettings;
}

type Container = Readonly<Record<string, unknown>>;

export function initContainers({ plan, ...rest }: Rendering): Container[] {
  const { prepare, drain, cordon, upgrade } = plan.spec ?? {};
  const rendering = { plan, ...rest };
  const name = rest.node.metadata.name;
  const kubectl = { image: kubectlImageFor(rest.node, rest.settings), volumes: upgrade?.volumes ?? [] };
  const host = windowsContext(rest.node);
  const containers: Container[] = [];
  if (prepare)
    containers.push(container('prepare', tagged(prepare, rendering), rendering, host ?? prepare.securityContext));
  if (drain) containers.push(container('drain', { ...kubectl, args: drainArguments(drain, name) }, rendering, host));
  else if (cordon === true)
    containers.push(container('cordon', { ...kubectl, args: ['cordon', name] }, rendering, host));
  return containers;
}

export function upgradeContainer(upgrade: ContainerSpec, rendering: Rendering): Container {
  const { privileged } = rendering.settings;
  const standard = windowsContext(rendering.node) ?? { privileged, capabilities: { add: ['CAP_SYS_BOOT'] } };
  return container('upgrade', tagged(upgrade, rendering), rendering, upgrade.securityContext ?? standard);
}

/** May be empty for Windows nodes. */
export function kubectlImageFor(node: Node, settings: JobSettings): string {
  return isWindows(node) ? settings.kubectlImageWindows : settings.kubectlImage;
}

function container(name: string, spec: ContainerSpec, rendering: Rendering, securityContext: unknown): Container {
  const { plan, settings } = rendering;
  const { image, command, args, envFrom } = spec;
  return {
    name,
    image,
    ...(command ? { command } : {}),
    ...(args ? { args } : {}),
    env: environment(spec, rendering),
    ...(envFrom ? { envFrom } : {}),
    volumeMounts: [
      { name: 'host-root', mountPath: '/host' },
      { name: 'pod-info', mountPath: '/run/system-upgrade/pod', readOnly: true },
      ...(plan.spec?.secrets ?? []).map((secret) => ({
        name: secretVolumeName(secret),
        mountPath: secretPath(secret),
        readOnly: true,
      })),
      ...(spec.volumes ?? []).map((volume) => ({ name: volume.name, mountPath: volume.destination })),
    ],
    ...(securityContext === undefined ? {} : { securityContext }),
    imagePullPolicy: settings.imagePullPolicy,
  };
}

function tagged(spec: ContainerSpec, { version }: Rendering): ContainerSpec {
  return { ...spec, image: withLatestTag(spec.image, version) };
}

function environment({ envs = [] }: ContainerSpec, { plan, version, hash }: Rendering): unknown[] {
  const fromPod = (name: string, fieldPath: string): unknown => ({ name, valueFrom: { fieldRef: { fieldPath } } });
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

export function secretVolumeName({ name }: SecretSpec): string {
  return shortenedName('secret', name);
}

function secretPath({ name, path }: SecretSpec): string {
  if (path.startsWith('/')) return path;
  return `/run/system-upgrade/secrets/${path === '' ? name : path}`;
}

export function isWindows({ metadata: { labels } }: Node): boolean {
  return labels?.['kubernetes.io/os'] === 'windows';
}

function windowsContext(node: Node): unknown {
  if (!isWindows(node)) return undefined;
  return { windowsOptions: { hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM' } };
}

/** Arguments of `kubectl drain`; never drains the pods of Jobs and of the controller. Throws SelectorError. */
export function drainArguments(drain: DrainSpec, nodeName: string): string[] {
  const { deleteLocalData = true, deleteEmptydirData = true, ignoreDaemonSets = true, timeout } = drain;
  const { skipWaitForDeleteTimeout = 0, gracePeriod } = drain;
  const flags: readonly [boolean, ...string[]][] = [
    [ignoreDaemonSets, '--ignore-daemonsets'],
    [deleteLocalData && deleteEmptydirData, '--delete-emptydir-data'],
    [drain.force === true, '--force'],
    [timeout !== undefined, '--timeout', typeof timeout === 'number' ? formatGoDuration(timeout) : String(timeout)],
    [gracePeriod !== undefined, '--grace-period', String(gracePeriod)],
    [drain.disableEviction === true, '--disable-eviction=true'],
    [skipWaitForDeleteTimeout > 0, '--skip-wait-for-delete-timeout', String(skipWaitForDeleteTimeout)],
  ];
  const selector = selectorText(drain.podSelector ?? {}, `!${CONTROLLER_LABEL}`);
  const given = flags.flatMap(([isGiven, ...texts]) => (isGiven ? texts : []));
  return ['drain', nodeName, '--pod-selector', selector, ...given];
}

const TAG = /^[\w][\w.-]{0,127}$/;
const REPOSITORY = /^(?:[A-Za-z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$/;

/** Adds the version as tag, unless there is a tag or digest, or the image is not a valid reference. */
export function withLatestTag(image: string, version: string): string {
  const afterHost = image.slice(image.lastIndexOf('/') + 1);
  if (/[:@]/.test(afterHost) || !REPOSITORY.test(image) || !TAG.test(version)) return image;
  return `${image.replace(/^(?:index\.)?docker\.io\/(?:library\/(?=[^/]+$))?/, '').replace(/^library\/(?=[^/]+$)/, '')}:${version}`;
}
