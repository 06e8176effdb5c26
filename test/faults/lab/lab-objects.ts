/** What the lab's API server holds at the beginning: kinds, namespaces, Nodes with pods, and the Plan of a run. */

import { globSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type Plan, plans } from '../../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
  type Node,
  namespaces,
  nodes,
  type Pod,
  pods,
} from '../../../src/kube/resources.ts';
import { kubernetesPartOf } from '../../../src/versions/release-parts.ts';
import { OLD } from '../../model/cluster.ts';
import { V2 } from '../../model/configure.ts';
import { buildNode } from '../../support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../support/builders/plans.ts';
import { buildPod } from '../../support/builders/pods.ts';

const DEFINITIONS = globSync('deploy/crds/*.yaml').map(
  (file) => parse(readFileSync(file, 'utf8'), { version: '1.1' }) as CustomResourceDefinition,
);

export async function installKinds(admin: KubeClient): Promise<void> {
  for (const definition of DEFINITIONS)
    await admin.create(customResourceDefinitions, structuredClone(definition));
  await admin.create(namespaces, { metadata: { name: 'k0s-autopilot' } });
}

/** Creates a Ready Node with the old version. */
export async function addNode(
  admin: KubeClient,
  name: string,
  labels: Record<string, string> = {},
): Promise<void> {
  const { uid: _, resourceVersion: __, ...metadata } = buildNode(name, { labels }).metadata;
  await admin.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata });
  await tellVersion(admin, name, OLD, '2026-01-01T00:00:00Z');
}

/** Creates a pod on the Node. A drain evicts this pod. */
export async function addPod(admin: KubeClient, name: string): Promise<void> {
  const { spec, ...pod } = buildPod(`on-${name}`, { node: name });
  const { uid: ___, ...podMetadata } = pod.metadata;
  const containers = [{ name: 'main', image: 'example.com/app' }];
  const body = { ...spec, containers, terminationGracePeriodSeconds: 0 } as NonNullable<
    Pod['spec']
  >;
  await admin.create(pods, { ...pod, metadata: podMetadata, spec: body }, { namespace: 'default' });
}

/** Writes the status that a kubelet writes at its start: the version, and conditions with the time of its own clock. */
export async function tellVersion(
  admin: KubeClient,
  name: string,
  release: string,
  lastHeartbeatTime: string,
): Promise<void> {
  const ready = {
    type: 'Ready',
    status: 'True' as const,
    lastHeartbeatTime,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const status: Node['status'] = {
    nodeInfo: { kubeletVersion: kubernetesPartOf(release) },
    conditions: [ready],
  };
  await admin.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
}

export interface Wanted {
  readonly controllers: readonly string[];
  readonly workers: readonly string[];
  readonly concurrent: number;
  /**
   * True if the command has both members (`k0supdate` and `airgapupdate`). Then each worker gets a bundle before its
   * k0s is upgraded.
   */
  readonly hasBundles?: boolean;
}

/** Creates a plan with one command that upgrades all nodes to the new version. */
export async function applyPlan(admin: KubeClient, wanted: Wanted): Promise<Plan> {
  const workers = { ...listed(...wanted.workers), limits: { concurrent: wanted.concurrent } };
  const k0supdate = buildUpdate({
    version: V2,
    targets: { controllers: listed(...wanted.controllers), workers },
  });
  const { version, platforms } = k0supdate;
  const bundles =
    wanted.hasBundles === true ? { airgapupdate: { version, platforms, workers } } : {};
  const plan = buildPlan({ commands: [{ k0supdate, ...bundles }] });
  const { uid: _, resourceVersion: __, creationTimestamp: ___, ...metadata } = plan.metadata;
  return await admin.create(plans, { ...plan, metadata });
}
