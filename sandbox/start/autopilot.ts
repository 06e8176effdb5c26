/** Demonstrates k0s Autopilot: hosts with stand-ins for k0s and agents, upgraded by one Plan. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { toDo } from '../../src/cli/advice/advice.ts';
import { mediumOf, standardOutput } from '../../src/cli/output.ts';
import type { ShownPlan } from '../../src/cli/status/json-form.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import { leases } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { sleep, systemClock } from '../../src/util/clock.ts';
import { EXIT, RefitError } from '../../src/util/errors.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { controllerAddress } from '../cluster/hosts.ts';
import { type Plane, startRealPlane, startSandboxPlane } from '../cluster/plane.ts';
import { CANARY_LINES, canaryPolicy, canarySummary } from './canary.ts';
import type { Demonstration, Flags, Ground } from './demonstration.ts';
import { follow } from './follow.ts';
import {
  BAD_BUILDS,
  CRASHES,
  FROM,
  KEPT_OFFERS,
  TO,
  TRIAL_POLICY,
  writePlans,
} from './releases.ts';
import { startShop } from './shop.ts';
import { summarize } from './summary.ts';
import { FOLLOWING, showReleases } from './updates.ts';

const CONTROLLERS = 3;
const WORKERS = 5;
const CONCURRENT = 2;
/** The releases for `--updates`: a patch release, and the next minor version. */
const RELEASES = ['v1.36.4+k0s.0', 'v1.37.0+k0s.0'];
/** Shorter than the 10 s of a real systemd unit, but long enough to see the order of the restarts. */
const RESTART_DELAY_MS = 1000;

export const autopilot: Demonstration = {
  dialect: 'autopilot',
  about: [
    `Starts ${CONTROLLERS} controllers and ${WORKERS} workers as processes on this machine, each with a stand-in for k0s and an agent,`,
    'applies a Plan, shows its progress and ends with a summary. Everything is removed at the end.',
  ],
  flags: {
    real: { type: 'boolean' },
    fail: { type: 'string' },
    canary: { type: 'boolean' },
    'bad-release': { type: 'boolean' },
    updates: { type: 'boolean' },
  },
  help: {
    '--real':
      'use a real kube-apiserver and etcd, built on first use (see docs/internals/testenv.md)',
    '--fail <node>': 'give this node, such as worker2, a damaged download',
    '--canary':
      'install a release that breaks an example shop; a health check stops it in the first wave',
    '--bad-release':
      'install a release that crashes; the agent of the first node restores the old version',
    '--updates':
      'apply no Plan; the cluster upgrades itself twice, from a channel of its own update server',
  },
  async run(flags, ground) {
    const { started, abort, directory } = ground;
    refuseMixed(flags);
    const broken = brokenNodes(flags);
    for (const node of broken) await writeFile(damageOf(directory, node), '');
    const plane = await startPlane(flags, ground);
    started.defer(async () => await plane.stop());
    abort.throwIfAborted();
    const cluster = await startCluster({
      plane,
      directory,
      controllers: CONTROLLERS,
      workers: WORKERS,
      version: FROM,
      offers: flags['updates'] === true ? RELEASES : KEPT_OFFERS,
      badBuilds: BAD_BUILDS,
      restartDelayMs: RESTART_DELAY_MS,
      environment: FOLLOWING.environment,
      // Commands ask each controller at the port of the kubeconfig, unless their user names another port.
      ...(flags['real'] !== true && { apiPort: Number(new URL(plane.url).port) }),
      breakFor: broken,
      isStillBroken: (node) => existsSync(damageOf(directory, node)),
    });
    started.defer(async () => await cluster.stop());
    abort.throwIfAborted();
    const code = await showerOf(flags)(cluster, plane, ground);
    if (code === EXIT.interrupted || !ground.keep) return code;
    const repair = broken.map((node) => repairOf(directory, node));
    const plans = flags['updates'] === true ? [] : await writePlans(cluster, directory, CONCURRENT);
    await ground.keep(await plane.kubeconfig('admin'), [...repair, ...plans]);
    return code;
  },
};

function brokenNodes({ fail }: Flags): string[] {
  if (fail === undefined) return [];
  const nodes = [...names('controller', CONTROLLERS), ...names('worker', WORKERS)];
  if (typeof fail === 'string' && nodes.includes(fail)) return [fail];
  throw new RefitError('REFIT_USAGE', `--fail takes one of ${nodes.join(', ')}`);
}

/** Returns the path of a file. While the file exists, the node gets damaged bytes. */
function damageOf(directory: string, node: string): string {
  return join(directory, `damaged-${node}`);
}

function repairOf(directory: string, node: string): string {
  return `  rm ${damageOf(directory, node)} && refit retry ${node}   # repair its download, and try again`;
}

/** Refuses two of these flags together, because each flag starts a different demonstration. */
function refuseMixed(flags: Flags): void {
  const stories = ['canary', 'bad-release', 'updates', 'fail'];
  const [one, other] = stories.filter((name) => flags[name] !== undefined);
  if (one === undefined || other === undefined) return;
  throw new RefitError(
    'REFIT_USAGE',
    `--${one} cannot be combined with --${other}: use one of them`,
  );
}

type Show = (cluster: Cluster, plane: Plane, ground: Ground) => Promise<number>;

function showerOf({ canary, updates, 'bad-release': bad }: Flags): Show {
  if (updates === true) return update;
  if (bad === true) return rollBack;
  return canary === true ? stopInFirstWave : upgrade;
}

function names(role: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${role}${index + 1}`);
}

async function startPlane({ real }: Flags, { directory, abort, say }: Ground): Promise<Plane> {
  const where = real === true ? 'a real control plane' : 'an API server in memory';
  say(`Starting ${where}, ${CONTROLLERS} controllers and ${WORKERS} workers…`);
  if (real !== true) return await startSandboxPlane(directory);
  const addresses = Array.from({ length: CONTROLLERS }, (_, index) => controllerAddress(index + 1));
  return await startRealPlane({ addresses, log: say, abort });
}

async function update(cluster: Cluster, plane: Plane, ground: Ground): Promise<number> {
  await cluster.startController('refit-controller', FOLLOWING.flags);
  return await showReleases(cluster, plane, { releases: RELEASES, concurrent: CONCURRENT }, ground);
}

async function upgrade(cluster: Cluster, plane: Plane, ground: Ground): Promise<number> {
  return await showPlan(cluster, plane, ground, { version: TO, concurrent: CONCURRENT });
}

/** Shows a shop that runs on the workers and fails with the new version. The health check of the shop stops the plan. */
async function stopInFirstWave(cluster: Cluster, plane: Plane, ground: Ground): Promise<number> {
  const workers = cluster.hosts.filter(({ role }) => role === 'worker');
  const shop = await startShop(workers, TO);
  ground.started.defer(async () => await shop.stop());
  await cluster.client.create(upgradePolicies, canaryPolicy(shop.url));
  for (const line of CANARY_LINES) ground.say(line);
  return await showPlan(cluster, plane, ground, {
    version: TO,
    concurrent: 1,
    ending: canarySummary,
  });
}

/** Shows a release that crashes on the first node. The agent of that node restores the old version. */
async function rollBack(cluster: Cluster, plane: Plane, ground: Ground): Promise<number> {
  await cluster.client.create(upgradePolicies, TRIAL_POLICY);
  return await showPlan(cluster, plane, ground, { version: CRASHES, concurrent: CONCURRENT });
}

const REMOVAL = 'The cluster will be removed. With --keep it keeps running, so you can fix it.';

interface Shown {
  readonly version: string;
  readonly concurrent: number;
  /** Returns lines for the end of the summary. */
  readonly ending?: (last: ShownPlan) => readonly string[];
}

/** Applies a Plan, shows its progress and ends with a summary, to which `ending` may add lines. */
async function showPlan(
  cluster: Cluster,
  plane: Plane,
  ground: Ground,
  { version, concurrent, ending }: Shown,
): Promise<number> {
  const { say, keep, abort } = ground;
  await cluster.startController('refit-controller');
  await untilLed(cluster, abort);
  await cluster.client.create(plans, cluster.plan({ id: 'first-minute', version, concurrent }));
  say(
    `Plan applied: all nodes from ${FROM} to ${version},\ncontrollers 1 at a time, workers ${concurrent} at a time.\n`,
  );
  const { code, last, waits } = await follow(
    await plane.kubeconfig('viewer'),
    ground,
    cluster.apiPort,
  );
  if (!last || code === EXIT.interrupted) return code;
  const versions = new Map(
    await Promise.all(
      cluster.hosts.map(async (host) => [host.name, await host.version()] as const),
    ),
  );
  const summary = summarize(last, versions, waits, mediumOf(standardOutput));
  // The result comes last, because a user may read only the end of the output.
  const lines = [
    ...(code === EXIT.ok || keep ? [] : ['', REMOVAL]),
    '',
    ...summary,
    ...(ending === undefined ? [] : ['', ...ending(last)]),
    ...(code !== EXIT.ok && keep ? toDo(last).slice(0, 1) : []),
  ];
  for (const line of lines) say(line);
  return code;
}

const LEADER_PATIENCE_MS = 30_000;
const POLL_MS = 50;

/**
 * Waits until a controller leads, which takes some seconds after its start. Otherwise the output of a healthy start
 * would begin with the message that no controller leads.
 */
async function untilLed({ client }: Cluster, abort: AbortSignal): Promise<void> {
  const { name, namespace } = LEADER_LEASE;
  const deadline = systemClock.monotonic() + LEADER_PATIENCE_MS;
  while (systemClock.monotonic() < deadline) {
    const lease = await ifFound(client.get(leases, name, { namespace, abort }));
    if (lease?.spec?.holderIdentity) return;
    await sleep(systemClock, POLL_MS, abort);
  }
}
