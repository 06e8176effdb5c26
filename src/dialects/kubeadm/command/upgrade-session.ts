/**
 * Opens the session of `refit kubeadm`: manifest, API connection and shells on the hosts. Surveys the cluster with
 * them.
 */
import { randomBytes, X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import type { ConnectionFlags } from '../../../cli/options.ts';
import { type Output, plainErrors, plainOutput } from '../../../cli/output.ts';
import { userName } from '../../../cli/user-name.ts';
import { jobNamespacesOf } from '../../../composition/own-namespaces.ts';
import { drainPreviewer } from '../../../drain/drain-preview.ts';
import { listPolicies, policyOfPlan } from '../../../engine/policy/choose-policy.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { ClusterConfig } from '../../../kube/config/cluster-config.ts';
import { loadChosenCluster } from '../../../kube/config/kubeconfig.ts';
import { leaderIdentity } from '../../../kube/election/lease-record.ts';
import { type ConfigMap, configMaps, nodes } from '../../../kube/resources.ts';
import {
  describeProblem,
  ifAllowed,
  ifFound,
  StatusError,
  TransportError,
} from '../../../kube/status-error.ts';
import { createClient } from '../../../kube/transport/http-client.ts';
import { askingOf } from '../../../ready/asking.ts';
import { readBounded } from '../../../util/bounded-file.ts';
import { sleep, systemClock } from '../../../util/clock.ts';
import { failing, RefitError } from '../../../util/errors.ts';
import { isRecord } from '../../../util/json.ts';
import { stderrLogger } from '../../../util/log.ts';
import { ownMember } from '../../../util/own-member.ts';
import { firstRepeated } from '../../../util/repeated.ts';
import type { BasicTools } from '../../../util/tools.ts';
import { parseForeignYaml } from '../../../util/yaml.ts';
import { type Finding, warn } from '../../../versions/findings.ts';
import { dateOf, timesOf } from '../host/certificates.ts';
import { type Shells, saidBy } from '../host/host.ts';
import { type HostFacts, probeHost, readFacts } from '../host/probe.ts';
import { configuredSettings } from '../host/removed-settings.ts';
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
import { limitFor, openShells, type SshShells } from '../plan/ssh.ts';
import { webhookFindings } from '../plan/webhooks.ts';

/** The most milliseconds until an API server answers, after it has started to listen and kubeadm has ended. */
const BACK_WITHIN_MS = 60_000;
/** The milliseconds between two attempts while the API server does not answer. */
const ASK_AGAIN_MS = 500;
/** The most milliseconds for a host to return its name. */
const HOSTNAME_MS = 60_000;
const ENDED = ': end that process if it hangs';

export interface KubeadmFlags extends ConnectionFlags {
  readonly manifest: string;
  readonly output: 'text' | 'json';
  readonly upgradeMachineDeployments?: boolean;
  readonly skipAddons?: boolean;
  readonly forceConflicts?: boolean;
  /** True if labels that upgrades of KubeOne left on Nodes are to be replaced. */
  readonly force?: boolean;
  readonly report?: string;
  /** True if the run goes back to the older patch that the manifest names. */
  readonly back?: boolean;
  readonly jobNamespaces?: readonly string[];
}

export interface KubeadmApplyFlags extends KubeadmFlags {
  readonly yes?: boolean;
  readonly digest?: string;
  /** The duration of the lease in milliseconds. */
  readonly leaseDuration: number;
}

export interface KubeadmSession<Flags extends KubeadmFlags = KubeadmFlags> extends BasicTools, Hop {
  readonly flags: Flags;
  readonly output: Output;
  readonly abort: AbortSignal;
  readonly config: ClusterConfig;
  readonly client: KubeClient;
  readonly shells: SshShells;
  readonly outages: ExpectedOutages;
  /** The name of this process. Other processes that wait for the lock see this name. */
  readonly identity: string;
}

export type ApplySession = KubeadmSession<KubeadmApplyFlags>;

export async function inSession<Flags extends KubeadmFlags, T>(
  flags: Flags,
  abort: AbortSignal,
  work: (session: KubeadmSession<Flags>) => Promise<T>,
  choose: Choose = nextStep,
): Promise<T> {
  const read = await loadManifest(flags.manifest);
  const config = await loadChosenCluster({
    ...flags,
    kubeconfig: flags.kubeconfig ?? read.kubeconfig,
  });
  await using shells = await openShells(read.ssh);
  using client = createClient(config, { userAgent: 'refit-kubeadm' });
  const random = randomBytes(4).toString('hex');
  const identity = leaderIdentity(hostname(), userName().slice(0, 16), String(process.pid), random);
  // The log contains only problems, because the status view shows the progress.
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
  if (files.length > 0) output.write(`Refit uses these files in its folder: ${files.join(', ')}\n`);
  // A roll-back does not change the minor version, so it needs no hops.
  const chosen = flags.back ? { ...read, hops: [] } : read;
  const hop = await choose(chosen, shells, client);
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
  // If the API server is down, the plan is unknown.
  return nextHop(
    manifest,
    facts,
    await client.get(configMaps, PLACE.name, PLACE).catch(() => undefined),
  );
};

/** Chooses all control-plane hosts. It sends no request to workers or to the API server, which may be down. */
export const controlPlaneAlone: Choose = async (manifest, shells) => {
  const hosts = controlPlaneOf(manifest);
  return { manifest: await withNames({ ...manifest, hosts }, shells), later: [], stay: '' };
};

/**
 * Resolves with a manifest in which each host has a name. If KubeOne's manifest has no name for a host, Refit reads the
 * name from the host, as KubeOne does.
 */
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
      `${host.address}: \`${asked}\` ${found}; write the hostname of this host in the manifest`,
    );
  });
  const twice = firstRepeated(hosts.map(({ name }) => name));
  if (twice === undefined) return { ...manifest, hosts };
  throw new RefitError(
    'REFIT_FILE',
    `two hosts have the hostname ${twice}; give each host its own hostname in the manifest`,
  );
}

/**
 * Reads the facts of all hosts, and writes nothing. @throws RefitError REFIT_SSH, with the names of all hosts that do
 * not answer
 */
export async function probeAll({ manifest, shells, clock }: KubeadmSession): Promise<HostFacts[]> {
  return await onAll(
    manifest.hosts,
    async (host) => await probeHost(shells, manifest, host, clock.now()),
  );
}

/**
 * Runs `work` for all hosts.
 * @throws RefitError with the message of every host for which it fails; REFIT_SSH if a host cannot be reached
 */
export async function onAll<T>(
  hosts: readonly ManifestHost[],
  work: (host: ManifestHost) => Promise<T>,
): Promise<T[]> {
  const limited = limitFor(hosts);
  const answers = await Promise.allSettled(
    hosts.map(async (host) => await limited(async () => await work(host))),
  );
  const failures = answers.flatMap((answer) =>
    answer.status === 'rejected' ? describeProblem(answer.reason) : [],
  );
  const told = failures.find(({ code }) => code === 'REFIT_SSH') ?? failures[0];
  if (told)
    throw new RefitError(told.code, '', { problems: failures.map(({ message }) => message) });
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

/** Resolves with the output of the script. @throws RefitError with the text `failed` and the output, if the exit code is not 0 */
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

/**
 * Runs `work` with the facts of all hosts. If the API server does not answer because kubeadm replaces it, runs `work` again, for at
 * most as long as a step may take.
 */
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
      // If the work failed soon after the answer of /readyz, the outage continues, because a load balancer may report
      // ready although the API server behind it is down. If the work continued for longer, this failure starts a new
      // outage.
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

/** Returns the error with additional sentences: which steps still run on the hosts, and which problems the hosts have. */
function withCauses(
  problem: RefitError,
  busy: readonly string[],
  hosts: readonly HostFacts[],
): RefitError {
  const running = busy.map((by) => `${by} is still at work${by.includes('process') ? ENDED : ''}`);
  const found = hosts.flatMap(({ host, problems }) =>
    problems.map(({ message }) => `${host.name}: ${message}`),
  );
  const problems = [problem.message, ...running, ...found];
  return new RefitError(problem.code, '', { problems, cause: problem });
}

export async function surveyCluster(
  session: KubeadmSession,
  hosts: readonly HostFacts[],
): Promise<Survey> {
  const { manifest, client, flags, abort } = session;
  const mapOf = async (of: string) =>
    await ifFound(client.get(configMaps, of, { ...PLACE, abort }));
  const [{ items }, config, kubelets, kubeProxy, plan, policies, webhooks, pools] =
    await Promise.all([
      // Without a transform, the Nodes keep their managed fields. These fields show who cordoned the Nodes.
      client.listAll(nodes, { abort }),
      mapOf('kubeadm-config'),
      mapOf('kubelet-config'),
      // A role of an earlier release lacks this right. Then the settings of kube-proxy are not checked.
      ifAllowed(mapOf('kube-proxy')),
      mapOf(PLACE.name),
      listPolicies(client, abort),
      webhookFindings(askingOf(client, abort, isOutage), session.clock.now()),
      listPools(client, abort),
    ]);
  const { unread } = plan ? readRecord(plan) : {};
  if (unread !== undefined) throw new RefitError('REFIT_REFUSED', unread);
  const policy = policyOfPlan(kubeadmView, policies ?? [], { metadata: PLACE }, DEFAULT_POLICY, {
    jobs: jobNamespacesOf({ config: session.config, jobNamespaces: flags.jobNamespaces }),
  });
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
    configured: configuredSettings({
      cluster: documentIn(config, 'ClusterConfiguration'),
      kubelet: documentIn(kubelets, 'kubelet'),
      kubeProxy: documentIn(kubeProxy, 'config.conf'),
    }),
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
  const takesOverLabel = flags.force === true;
  const asked = { manifest, rollsPools, takesOverLabel, goesBack: flags.back === true };
  return { ...asked, hosts, nodes: items, pools, addons, kubeconfig, ...found };
}

/** Returns true if the API server did not answer, so that the survey begins again. */
function isOutage(error: unknown): boolean {
  return !(error instanceof StatusError);
}

/**
 * Warns if the client certificate in the kubeconfig ends soon. kubeadm does not renew this certificate, because the
 * kubeconfig contains a copy.
 */
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

/** Returns one field of the YAML document under `key`. */
function valueIn(config: ConfigMap | undefined, key: string, field: string): unknown {
  const value = documentIn(config, key);
  return isRecord(value) ? ownMember(value, field) : undefined;
}

/** Returns the YAML document under `key`; undefined if there is none. */
function documentIn(config: ConfigMap | undefined, key: string): unknown {
  const { metadata, data } = config ?? {};
  const place = `ConfigMap ${metadata?.namespace}/${metadata?.name}: data.${key}: `;
  return parseForeignYaml(ownMember(data, key) ?? '', failing('REFIT_REFUSED', place));
}
