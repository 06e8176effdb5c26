/** Owns the containers of a Job's pod: what runs, with which mounts and environment, in the order of the original. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { ContainerSpec, SecretSpec } from '../../../api/cattle/workload.ts';
import type { Node } from '../../../kube/types.ts';
import type { JobSettings } from '../config.ts';
import { shortenedName } from '../shortened-name.ts';
import { drainArguments } from './drain.ts';
import { withLatestTag } from './image.ts';

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

/** Empty where Windows nodes have none. */
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
