/** Runs in the operator's namespaces. Makes a cluster of k0s, and plays one scene on it. */
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../src/util/errors.ts';
import { Checks } from '../checks.ts';
import { Balancer } from '../machines/balancer.ts';
import { NETWORK } from '../machines/machine.ts';
import { makeSwitch, OPERATOR } from '../machines/namespaces.ts';
import { resultOf, timedLog } from '../machines/whole-proof.ts';
import { Cluster } from './cluster/cluster.ts';
import { Mirror } from './mirror.ts';
import type { InsideOptions, SceneName } from './options.ts';
import type { Scene } from './scene.ts';
import { goBack } from './scenes/back.ts';
import { failInManyWays } from './scenes/faults/faults.ts';
import { upgradeForLong } from './scenes/long.ts';
import { migrate } from './scenes/migrate.ts';
import { mix } from './scenes/mixtures.ts';
import { followPolicy } from './scenes/policy.ts';
import { recordK0s } from './scenes/recordings.ts';
import { followChannel } from './scenes/updates.ts';
import { compareUpgrades } from './scenes/upgrade.ts';

/** The address from which the load balancer probes the API servers. */
const BALANCER = `${NETWORK}.2`;
/** The ports of a controller that workers and other controllers use. */
const PORTS = [6443, 9443];

const options = JSON.parse(await readFile(process.argv[2] ?? '', 'utf8')) as InsideOptions;
const log = timedLog(options.part);

const PLAYS: Readonly<Record<SceneName, (scene: Scene) => Promise<void>>> = {
  upgrade: compareUpgrades,
  mixtures: mix,
  migrate,
  faults: failInManyWays,
  policy: followPolicy,
  back: goBack,
  updates: followChannel,
  long: upgradeForLong,
  recordings: recordK0s,
};

/** These scenes measure or record k0s as its own unit starts it. The other scenes have no reason to wait as long. */
const AS_INSTALLED: readonly SceneName[] = ['upgrade', 'recordings'];
const restartSeconds = AS_INSTALLED.includes(options.part) ? 10 : 2;

const checks = new Checks(log);
const cluster = new Cluster({ ...options, restartSeconds, log });
await makeSwitch([OPERATOR, BALANCER]);

async function play(): Promise<void> {
  const addresses = cluster.controllers.map(({ address }) => address);
  await using things = new AsyncDisposableStack();
  for (const port of PORTS) {
    const balancer = things.use(
      new Balancer(addresses, { own: port, backend: port, probe: 6443 }, BALANCER),
    );
    await balancer.start(OPERATOR);
  }
  const { from, to, later, withoutKubelet, withoutManager } = options;
  const releases = [from, to, ...later, withoutKubelet, withoutManager].filter(
    (each) => each !== undefined,
  );
  const mirror = things.use(new Mirror(releases));
  await mirror.start();
  await cluster.make();
  await PLAYS[options.part]({ ...options, cluster, mirror, checks, log });
}

/** Copies the logs of all machines, for those who look for the cause of a failure. */
async function keepLogs(): Promise<void> {
  for (const { name, root } of cluster.machines) {
    const from = join(root, 'var/log');
    const to = join(options.logs, options.part, name);
    await mkdir(to, { recursive: true });
    const files = await readdir(from).catch(() => []);
    for (const file of files.filter((each) => each.endsWith('.log')))
      await cp(join(from, file), join(to, file));
  }
}

try {
  await play();
} catch (error) {
  await checks.check('the scene comes to its end', () => [messageOf(error)]);
}
if (checks.outcome.failed.length > 0) await keepLogs();
await writeFile(resultOf(options), JSON.stringify(checks.outcome));
// The machines end when this process ends.
process.exit(0);
