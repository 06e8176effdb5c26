/** Surveys a kubeadm cluster over SSH and through the API, for `plan` and `apply`. */
import { parse } from 'yaml';
import { kubeadmView } from '../../dialects/kubeadm/dialect.ts';
import type { Manifest } from '../../dialects/kubeadm/manifest.ts';
import { type ConfigMap, configMaps, PLACE } from '../../dialects/kubeadm/plan-object.ts';
import type { Survey } from '../../dialects/kubeadm/preflight.ts';
import { type HostFacts, probeHost } from '../../dialects/kubeadm/probe.ts';
import type { Shells } from '../../dialects/kubeadm/ssh.ts';
import { DrainPreviewer } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import { listPolicies } from '../../engine/policy/choose-policy.ts';
import { policyOfPlan } from '../../engine/policy/plan-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { nodes } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import { messageOf, RefitError } from '../../util/errors.ts';

/** Writes nothing. @throws RefitError REFIT_SSH with every host that does not answer */
export async function probeAll(manifest: Manifest, shells: Shells): Promise<HostFacts[]> {
  const answers = await Promise.allSettled(manifest.hosts.map(async (host) => await probeHost(shells, host)));
  const failures = answers.flatMap((answer) => (answer.status === 'rejected' ? [messageOf(answer.reason)] : []));
  if (failures.length > 0) throw new RefitError('REFIT_SSH', failures.join('; '));
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

export async function surveyCluster(
  manifest: Manifest,
  hosts: readonly HostFacts[],
  client: KubeClient,
  abort: AbortSignal,
): Promise<Survey> {
  const { namespace, name } = PLACE;
  const [{ items }, config, plan, policies] = await Promise.all([
    client.listAll(nodes, { abort }),
    ifFound(client.get(configMaps, 'kubeadm-config', { namespace, abort })),
    ifFound(client.get(configMaps, name, { namespace, abort })),
    listPolicies(client, abort),
  ]);
  const policy = policyOfPlan(kubeadmView, policies ?? [], { metadata: PLACE });
  const drainPreviews = policy.drain.enabled
    ? await previewDrains(client, manifest, policy.drain.options, abort)
    : new Map();
  return { manifest, hosts, nodes: items, clusterVersion: clusterVersionIn(config), plan, policy, drainPreviews };
}

async function previewDrains(
  client: KubeClient,
  { hosts }: Manifest,
  options: DrainOptions,
  abort: AbortSignal,
): Promise<Survey['drainPreviews']> {
  const look = new DrainPreviewer(client, abort);
  const looks = hosts.map(async ({ name }) => [name, await look.ahead(name, options)] as const);
  return new Map(await Promise.all(looks));
}

function clusterVersionIn(config: ConfigMap | undefined): string | undefined {
  const text = config?.data?.['ClusterConfiguration'];
  if (text === undefined) return undefined;
  const { kubernetesVersion } = parse(text) as { kubernetesVersion?: unknown };
  return typeof kubernetesVersion === 'string' ? kubernetesVersion : undefined;
}
