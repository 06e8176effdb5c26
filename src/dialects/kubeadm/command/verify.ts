/** Checks the whole cluster after an upgrade, and reports for each host the versions and the problems. */

import type { Node } from '../../../kube/resources.ts';
import { ifFound } from '../../../kube/status-error.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import { formatDuration } from '../../../util/duration.ts';
import { messageOf } from '../../../util/errors.ts';
import { type HostFacts, readFacts } from '../host/probe.ts';
import { optionsFor } from '../host/scripts.ts';
import * as verify from '../host/verify.ts';
import { limitFor } from '../plan/ssh.ts';
import type { KubeadmSession } from './upgrade-session.ts';

/** The state of a cluster at one time. */
export interface ClusterState {
  /** The facts of each host that answered. */
  readonly facts: readonly HostFacts[];
  /** The Nodes; undefined if the API server does not answer. */
  readonly nodes: readonly Node[] | undefined;
  /** The checks by the name of the host, or by `cluster`. */
  readonly checks: ReadonlyMap<string, readonly verify.Check[]>;
}

/**
 * Checks the cluster until nothing is wrong, for at most the given milliseconds. The wait is needed because CoreDNS and
 * kube-proxy still roll out when kubeadm ends.
 */
export async function verifyCluster(
  session: KubeadmSession,
  withinMs: number,
): Promise<ClusterState> {
  let isTold = withinMs === 0;
  const ask = async (): Promise<ClusterState> => {
    const found = await checkCluster(session);
    const problems = [...found.checks].flatMap(([name, own]) =>
      verify.problemsOf(own).map((problem) => `${name}: ${problem}`),
    );
    const first = problems.at(0);
    if (first !== undefined && !isTold)
      session.output.write(`Waiting up to ${formatDuration(withinMs)} for ${first}\n`);
    isTold = true;
    return found;
  };
  const state = await verify.untilRight(ask, isRight, { ...session, withinMs });
  for (const [name, own] of state.checks) {
    const good = own
      .filter(({ cure }) => cure === undefined)
      .map(({ component, found }) => `${component} ${found}`);
    if (good.length > 0) session.output.write(`Verified ${name}: ${good.join(', ')}\n`);
    for (const problem of verify.problemsOf(own))
      session.output.write(`failed ${name}: ${problem}\n`);
  }
  return state;
}

export function isRight({ checks }: ClusterState): boolean {
  return [...checks.values()].every((own) => verify.problemsOf(own).length === 0);
}

/** Checks the cluster once and prints nothing. If a host does not answer, the result contains this as a problem. */
export async function checkCluster(session: KubeadmSession): Promise<ClusterState> {
  const { client, manifest, shells, clock, abort } = session;
  const problems = new Map<string, verify.Check>();
  const unlessAway = async <T>(asked: Promise<T>): Promise<T | undefined> =>
    await asked.catch((error: unknown) => {
      abort.throwIfAborted();
      const found = messageOf(error);
      const cure = 'fix that, then run the command again';
      problems.set(found, { component: 'verification', found, cure });
      return undefined;
    });
  const limited = limitFor(manifest.hosts);
  const reads = manifest.hosts.map((host) => limited(async () => await readFacts(shells, host)));
  const facts = (await Promise.all(reads.map(unlessAway))).filter((each) => each !== undefined);
  const [list, pods] = await Promise.all([
    unlessAway(listNodes(client, { abort })),
    unlessAway(verify.controlPlanePods(client)),
  ]);
  const addons = (await unlessAway(addonChecks(session, list?.items ?? []))) ?? [];
  const ofHosts = (list && pods ? facts : []).map((each): [string, readonly verify.Check[]] => {
    const { name } = each.host;
    const node = list?.items.find(({ metadata }) => metadata.name === name);
    const parts = ['kubeadm', 'kubelet'] as const;
    return [
      name,
      verify.hostChecks(
        { facts: each, node, pods: pods ?? [] },
        manifest.version,
        parts,
        clock.now(),
      ),
    ];
  });
  // The members of etcd are checked only if all hosts answered. A host that does not answer may have one of the
  // members.
  const etcd = facts.length === manifest.hosts.length ? verify.etcdChecks(facts) : [];
  const checks = new Map<string, readonly verify.Check[]>([
    ...ofHosts,
    ['cluster', [...problems.values(), ...etcd, ...addons]],
  ]);
  return { facts, nodes: list?.items, checks };
}

/** Checks CoreDNS and kube-proxy. If one of them is absent, nothing is wrong, because the cluster may use another product instead. */
async function addonChecks(
  { client, manifest, abort }: KubeadmSession,
  all: readonly Node[],
): Promise<verify.Check[]> {
  const known = new Set(manifest.hosts.map(({ name }) => name));
  // kube-proxy runs on Linux only.
  const linux = all.filter(({ metadata }) => metadata.labels?.['kubernetes.io/os'] === 'linux');
  const absent = verify.absentOf(linux).filter((name) => !known.has(name));
  // kubeadm upgrades kube-proxy unless an UpgradeConfiguration switches that off. So if a host has an
  // UpgradeConfiguration, any version of kube-proxy is right.
  const isSkippable = manifest.hosts.some(
    (host) => optionsFor(manifest, host).config !== undefined,
  );
  const checks = verify.ADDONS.map(async ({ resource, name }) => {
    const found = await ifFound(client.get(resource, name, { namespace: 'kube-system', abort }));
    if (name !== 'kube-proxy') return found ? [verify.addonCheck(found, resource.kind)] : [];
    return found
      ? [
          verify.addonCheck(
            found,
            resource.kind,
            isSkippable ? undefined : manifest.version,
            absent,
          ),
        ]
      : [];
  });
  return (await Promise.all(checks)).flat();
}
