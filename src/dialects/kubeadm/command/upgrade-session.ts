/** The session of `refit kubeadm`: manifest, API connection and shells on the hosts, and the survey through them. */
import { randomBytes, X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import type { ConnectionFlags } from '../../../cli/options.ts';
import { type Output, plainErrors, plainOutput } from '../../../cli/output.ts';
import { userName } from '../../../cli/user-name.ts';
import { drainPreviewer } from '../../../drain/drain-preview.ts';
import { listPolicies, policyOfPlan } from '../../../engine/policy/choose-policy.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { ClusterConfig } from '../../../kube/config/cluster-config.ts';
import { loadClusterConfig } from '../../../kube/config/kubeconfig.ts';
import { leaderIdentity } from '../../../kube/election/lease-record.ts';
import { type ConfigMap, configMaps, nodes } from '../../../kube/resources.ts';
import { describeProblem, ifFound, TransportError } from '../../../kube/status-error.ts';
import { createClient } from '../../../kube/transport/http-client.ts';
import { readBounded } from '../../../util/bounded-file.ts';
import { sleep, systemClock } from '../../../util/clock.ts';
import { failing, RefitError } from '../../../util/errors.ts';
import { isRecord } from '../../../util/json.ts';
import { stderrLogger } from '../../../util/log.ts';
import { ownMember } from '../../../util/own-member.ts';
import { firstRepeated } from '../../../util/repeated.ts';
import type { Tools } from '../../../util/tools.ts';
import { parseForeignYaml } from '../../../util/yaml.ts';
import { type Finding, warn } from '../../../versions/findings.ts';
import { dateOf, timesOf } from '../host/certificates.ts';
import { type Shells, saidBy } from '../host/host.ts';
import { type HostFacts, probeHost, readFacts } from '../host/probe.ts';
import { LOCK_WAIT } from '../host/scripts.ts';
import { planAddons, readAddon } from '../plan/addons.ts';
import { nodeName } from '../plan/fields.ts';
import { type Hop, nextHop } from '../plan/hops.ts';
import { kubeadmView } from '../plan/kubeadm-dialect.ts';
import { UNNAMED } from '../plan/kubeone.ts';
import { listPools } from '../plan/machine-pools.ts';
import {
  controlPlaneOf,
  loadManifest,
  type Manifest,
  type ManifestHost,
} from '../plan/manifest.ts';
import { type ExpectedOutages, expectedOutages } from '../plan/outages.ts';
import { PLACE, readRecord } from '../plan/plan-object.ts';
import type { Survey } from '../plan/preflight.ts';
import { openShells, type SshShells, turnsOf } from '../plan/ssh.ts';
import { webhookFindings } from '../plan/webhooks.ts';

/** Milliseconds for an API server to answer, once it listens and kubeadm has ended. */
const BACK_WITHIN_MS = 60_000;
/** Milliseconds between two attempts while the API server is away. */
const ASK_AGAIN_MS = 500;
/** Milliseconds in which a host must say its name. */
const HOSTNAME_MS = 60_000;
const ENDED = ': end that process if it hangs';

export interface KubeadmFlags extends ConnectionFlags {
  readonly manifest: string;
  readonly output: 'text' | 'json';
  readonly upgradeMachineDeployments?: boolean;
  readonly skipAddons?: boolean;
  readonly forceConflicts?: boolean;
  readonly report?: string;
}

export interface KubeadmApplyFlags extends KubeadmFlags {
  readonly yes?: boolean;
  readonly digest?: string;
  /** Milliseconds. */
  readonly leaseDuration: number;
}

export interface KubeadmSession<Flags extends KubeadmFlags = KubeadmFlags>
  extends Pick<Tools, 'clock' | 'log'>,
    Hop {
  readonly flags: Flags;
  readonly output: Output;
  readonly abort: AbortSignal;
  readonly config: ClusterConfig;
  readonly client: KubeClient;
  readonly shells: SshShells;
  readonly outages: ExpectedOutages;
  /** Shown to others who wait for the lock. */
  readonly identity: string;
}

export type ApplySession = KubeadmSession<KubeadmApplyFlags>;

export async function inSession<Flags extends KubeadmFlags>(
  flags: Flags,
  abort: AbortSignal,
  work: (session: KubeadmSession<Flags>) => Promise<number>,
  choose: Choose = nextStep,
): Promise<number> {
  const read = await loadManifest(flags.manifest);
  const config = await loadClusterConfig({
    path: flags.kubeconfig ?? read.kubeconfig,
    context: flags.context,
  });
  await using shells = await openShells(read.ssh);
  using client = createClient(config, { userAgent: 'refit-kubeadm' });
  const random = randomBytes(4).toString('hex');
  const identity = leaderIdentity(hostname(), userName().slice(0, 16), String(process.pid), random);
  // The status view shows progress, so only problems are logged.
  const outages = expectedOutages(systemClock);
  const log = outages.logger(stderrLogger('warn'));
  const output = flags.output === 'json' ? plainErrors : plainOutput;
  const untouched = read.kubeOne?.untouched ?? [];
  if (untouched.length > 0)
    output.write(
      `Refit does not touch these parts of ${flags.manifest}: ${untouched.join(', ')}\n`,
    );
  const files = read.kubeOne
    ? [read.kubeconfig, read.ssh.knownHostsFile].flatMap((file) => file ?? [])
    : [];
  if (files.length > 0) output.write(`Refit uses what lies beside it: ${files.join(', ')}\n`);
  const hop = await choose(read, shells, client);
  const here = {
    flags,
    clock: systemClock,
    output,
    log,
    outages,
    abort,
    config,
    client,
    shells,
    identity,
  };
  return await work({ ...here, ...hop });
}

type Choose = (manifest: Manifest, shells: SshShells, client: KubeClient) => Promise<Hop>;

const nextStep: Choose = async (read, shells, client) => {
  const manifest = await withNames(read, shells);
  if (manifest.hops.length === 0) return { manifest, later: [], stay: '' };
  const facts = await onAll(manifest.hosts, async (host) => await readFacts(shells, host));
  // The API server may be away.
  return nextHop(
    manifest,
    facts,
    await client.get(configMaps, PLACE.name, PLACE).catch(() => undefined),
  );
};

/** Workers and the API server may be away. */
export const controlPlaneAlone: Choose = async (manifest, shells) => {
  const hosts = controlPlaneOf(manifest);
  return { manifest: await withNames({ ...manifest, hosts }, shells), later: [], stay: '' };
};

/** A host of KubeOne's manifest may have no name: then it is asked, as KubeOne does. */
async function withNames(manifest: Manifest, shells: SshShells): Promise<Manifest> {
  const { asked } = manifest.kubeOne ?? {};
  if (asked === undefined) return manifest;
  const hosts = await onAll(manifest.hosts, async (host) => {
    if (!host.name.startsWith(UNNAMED)) return host;
    const name = (await shells.run(host, `${asked}\n`, HOSTNAME_MS)).stdout.trim();
    if (nodeName.safeParse(name).success) return { ...host, name };
    const found = `prints ${JSON.stringify(name.slice(0, 80))}, which is not the name of a Node`;
    throw new RefitError(
      'REFIT_FILE',
      `${host.address}: \`${asked}\` ${found}; give its hostname in the manifest`,
    );
  });
  const twice = firstRepeated(hosts.map(({ name }) => name));
  if (twice === undefined) return { ...manifest, hosts };
  throw new RefitError(
    'REFIT_FILE',
    `two hosts call themselves ${twice}; give each its hostname in the manifest`,
  );
}

/** Writes nothing. @throws RefitError REFIT_SSH with every host that does not answer */
export async function probeAll({ manifest, shells, clock }: KubeadmSession): Promise<HostFacts[]> {
  return await onAll(
    manifest.hosts,
    async (host) => await probeHost(shells, manifest, host, clock.now()),
  );
}

/** @throws RefitError with what every host says that fails; REFIT_SSH if one cannot be reached */
export async function onAll<T>(
  hosts: readonly ManifestHost[],
  work: (host: ManifestHost) => Promise<T>,
): Promise<T[]> {
  const inTurn = turnsOf(hosts);
  const answers = await Promise.allSettled(
    hosts.map(async (host) => await inTurn(async () => await work(host))),
  );
  const failures = answers.flatMap((answer) =>
    answer.status === 'rejected' ? describeProblem(answer.reason) : [],
  );
  const told = failures.find(({ code }) => code === 'REFIT_SSH') ?? failures[0];
  if (told)
    throw new RefitError(told.code, '', { problems: failures.map(({ message }) => message) });
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

/** What the script prints. @throws RefitError with `failed` and what the host says, unless it ends well */
export async function outputOn(
  host: ManifestHost,
  script: string,
  shells: Shells,
  failed = '',
): Promise<string> {
  const result = await shells.run(host, script);
  if (result.code === 0) return result.stdout.trim();
  throw new RefitError(
    'REFIT_REFUSED',
    `${host.name}: ${failed}${saidBy(result) || `exit code ${result.code}`}`,
  );
}

/** Does `work` with the facts of all hosts, and again while kubeadm replaces the API server, as long as a step waits at most. */
export async function throughOutages<T>(
  session: KubeadmSession,
  work: (session: KubeadmSession, hosts: readonly HostFacts[]) => Promise<T>,
  probed?: readonly HostFacts[],
): Promise<T> {
  const { client, clock, output, abort } = session;
  let hosts = probed ?? (await probeAll(session));
  let outage: { readonly since: number; until: number } | undefined;
  for (;;) {
    let readyAt = Number.POSITIVE_INFINITY;
    try {
      const { status } = await client.raw('/readyz', { abort });
      if (status === 200) readyAt = clock.monotonic();
      else if (hosts.some(({ busy }) => busy.length > 0))
        throw new TransportError('the API server is not ready');
      return await work(session, outage === undefined ? hosts : await probeAll(session));
    } catch (error) {
      abort.throwIfAborted();
      const problem = describeProblem(error);
      if (problem.code !== 'REFIT_UNREACHABLE') throw error;
      const since = clock.monotonic();
      // A load balancer may answer well for an API server that is away: then the work fails soon.
      if (since - readyAt >= BACK_WITHIN_MS) outage = undefined;
      hosts = await probeAll(session);
      const busy = hosts.flatMap(({ host, busy }) => busy.map((by) => `${host.name} (${by})`));
      if (outage === undefined && busy.length > 0)
        output.write(`Waiting for the API server, which kubeadm replaces on ${busy.join(', ')}.\n`);
      outage ??= { since, until: since };
      const now = clock.monotonic();
      if (busy.length > 0) outage.until = now + BACK_WITHIN_MS;
      if (now >= Math.min(outage.until, outage.since + LOCK_WAIT * 1000)) {
        throw withCauses(problem, busy, hosts);
      }
      await sleep(clock, ASK_AGAIN_MS, abort);
    }
  }
}

/** Adds to the problem what still works on the hosts, and what is wrong there. */
function withCauses(
  problem: RefitError,
  busy: readonly string[],
  hosts: readonly HostFacts[],
): RefitError {
  const held = busy.map((by) => `${by} is still at work${by.includes('process') ? ENDED : ''}`);
  const found = hosts.flatMap(({ host, problems }) =>
    problems.map(({ message }) => `${host.name}: ${message}`),
  );
  const problems = [problem.message, ...held, ...found];
  return new RefitError(problem.code, '', { problems, cause: problem });
}

export async function surveyCluster(
  session: KubeadmSession,
  hosts: readonly HostFacts[],
): Promise<Survey> {
  const { manifest, client, flags, abort } = session;
  const mapOf = async (of: string) =>
    await ifFound(client.get(configMaps, of, { ...PLACE, abort }));
  const [{ items }, config, kubelets, plan, policies, webhooks, pools] = await Promise.all([
    // With the managed fields, which tell who has cordoned a node.
    client.listAll(nodes, { abort }),
    mapOf('kubeadm-config'),
    mapOf('kubelet-config'),
    mapOf(PLACE.name),
    listPolicies(client, abort),
    webhookFindings(client, abort),
    listPools(client, abort),
  ]);
  const { unread } = plan ? readRecord(plan) : {};
  if (unread !== undefined) throw new RefitError('REFIT_REFUSED', unread);
  const policy = policyOfPlan(kubeadmView, policies ?? [], { metadata: PLACE });
  const { enabled, options } = policy.drain;
  const look = drainPreviewer(client, abort);
  const drained = enabled ? manifest.hosts : [];
  const looks = drained.map(
    async (host) => [host.name, await look.ahead(host.name, options)] as const,
  );
  const drainPreviews = new Map(await Promise.all(looks));
  const version = valueIn(config, 'ClusterConfiguration', 'kubernetesVersion');
  const clusterVersion = typeof version === 'string' ? version : undefined;
  const allowsCgroupV1 = valueIn(kubelets, 'kubelet', 'failCgroupV1') === false;
  const configuration = [config?.data, kubelets?.data];
  const found = {
    clusterVersion,
    allowsCgroupV1,
    configuration,
    plan,
    policy,
    drainPreviews,
    webhooks,
  };
  const rollsPools = flags.upgradeMachineDeployments === true;
  const tools = {
    client,
    writer: client,
    clock: session.clock,
    force: flags.forceConflicts,
    abort,
  };
  const read = flags.skipAddons ? [] : manifest.addons.map(readAddon);
  const addons = await planAddons(tools, await Promise.all(read));
  const kubeconfig = await kubeconfigFindings(session);
  return { manifest, hosts, nodes: items, pools, rollsPools, addons, kubeconfig, ...found };
}

/** It is a copy, which nobody renews. */
async function kubeconfigFindings({ config, clock }: KubeadmSession): Promise<Finding[]> {
  const pem = config.user.clientCertificate;
  if (!pem) return [];
  const { until, soon } = timesOf(
    new X509Certificate('text' in pem ? pem.text : await readBounded(pem.file)),
  );
  const found = `the client certificate of ${config.files.join(', ')} ends on ${dateOf(until)}`;
  const cure =
    'run kubeadm kubeconfig user on a control-plane host, or copy admin.conf once it is renewed';
  return clock.now() < soon ? [] : [warn('certificate', `${found}: ${cure}`)];
}

/** Of one field of the YAML document under `key`. */
function valueIn(config: ConfigMap | undefined, key: string, field: string): unknown {
  const { metadata, data } = config ?? {};
  const place = `ConfigMap ${metadata?.namespace}/${metadata?.name}: data.${key}: `;
  const [value] = parseForeignYaml(ownMember(data, key) ?? '', failing('REFIT_REFUSED', place));
  return isRecord(value) ? ownMember(value, field) : undefined;
}
