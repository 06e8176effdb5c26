/** Looks at the whole cluster after an upgrade, and says what each host runs and what is wrong. */
import { optionsFor } from '../../dialects/kubeadm/manifest.ts';
import { readFacts } from '../../dialects/kubeadm/probe.ts';
import {
  ADDONS,
  addonCheck,
  type Check,
  controlPlanePods,
  etcdChecks,
  hostChecks,
  problemsOf,
  untilRight,
} from '../../dialects/kubeadm/verify.ts';
import { nodes } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import { messageOf } from '../../util/errors.ts';
import { type KubeadmSession, onAll } from './session.ts';

/** Of each host, and of `cluster`. */
export type ClusterChecks = ReadonlyMap<string, readonly Check[]>;

/** CoreDNS and kube-proxy still roll out when kubeadm ends. False if anything is wrong after that time. */
export async function verifyCluster(session: KubeadmSession, withinMs: number): Promise<boolean> {
  const checks = await untilRight(async () => await checkCluster(session), isRight, { ...session, withinMs });
  for (const [name, own] of checks) {
    const good = own.filter(({ cure }) => cure === undefined).map(({ component, found }) => `${component} ${found}`);
    if (good.length > 0) session.output.write(`Verified ${name}: ${good.join(', ')}\n`);
    for (const problem of problemsOf(own)) session.output.write(`failed ${name}: ${problem}\n`);
  }
  return isRight(checks);
}

function isRight(checks: ClusterChecks): boolean {
  return [...checks.values()].every((own) => problemsOf(own).length === 0);
}

async function checkCluster(session: KubeadmSession): Promise<ClusterChecks> {
  const { client, manifest, shells, clock, abort } = session;
  const { version } = manifest;
  try {
    const hosts = await onAll(manifest.hosts, async (host) => await readFacts(shells, host));
    const [{ items }, pods] = await Promise.all([client.listAll(nodes, { abort }), controlPlanePods(client)]);
    const ofHosts = hosts.map((facts): [string, readonly Check[]] => {
      const { name } = facts.host;
      const node = items.find(({ metadata }) => metadata.name === name);
      return [name, hostChecks({ facts, node, pods }, version, ['kubeadm', 'kubelet'], clock.now())];
    });
    return new Map([...ofHosts, ['cluster', [...etcdChecks(hosts), ...(await addonChecks(session))]]]);
  } catch (error) {
    abort.throwIfAborted();
    const cure = 'mend that, then run the command again';
    return new Map([['cluster', [{ component: 'verification', found: messageOf(error), cure }]]]);
  }
}

/** A cluster may have others in their place. */
async function addonChecks({ client, manifest, abort }: KubeadmSession): Promise<Check[]> {
  // Only an UpgradeConfiguration can leave them out of an upgrade.
  const isSkippable = manifest.hosts.some((host) => optionsFor(manifest, host).config !== undefined);
  const checks = ADDONS.map(async ({ resource, name }) => {
    const found = await ifFound(client.get(resource, name, { namespace: 'kube-system', abort }));
    const version = name === 'kube-proxy' && !isSkippable ? manifest.version : undefined;
    return found ? [addonCheck(found, resource.kind, version)] : [];
  });
  return (await Promise.all(checks)).flat();
}
