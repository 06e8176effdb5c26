/** Runs in the operator's namespaces. Makes the cluster, and runs one part of the proof on it. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../src/util/errors.ts';
import { Checks } from '../checks.ts';
import { BALANCER, USUAL, withCluster } from '../kubeadm/cluster.ts';
import { makeSwitch, OPERATOR } from '../machines/namespaces.ts';
import { resultOf, timedLog } from '../machines/whole-proof.ts';
import type { InsideOptions, Part } from './options.ts';
import { prepare, type Scene } from './scene.ts';
import { proveSuite } from './specs.ts';
import { proveSwap } from './swap.ts';
import { proveUpgradeScript } from './upgrade-script/prove.ts';

const PROOFS: Readonly<Record<Part, (scene: Scene) => Promise<void>>> = {
  suite: proveSuite,
  swap: proveSwap,
  'upgrade-script': proveUpgradeScript,
};

const given = JSON.parse(await readFile(process.argv[2] ?? '', 'utf8')) as InsideOptions;
const log = timedLog(given.part);
const checks = new Checks(log);
const options = {
  ...given,
  directory: join(given.directory, 'cluster'),
  logs: join(given.logs, given.part),
};
await mkdir(options.logs);
await makeSwitch([OPERATOR, BALANCER]);
try {
  await withCluster({ ...options, log, way: USUAL }, async (cluster) => {
    const scene: Scene = { cluster, options, checks, log };
    await prepare(scene);
    await PROOFS[given.part](scene);
  });
} catch (error) {
  await checks.check('the proof comes to its end', () => [messageOf(error)]);
}
await writeFile(resultOf(given), JSON.stringify(checks.outcome));
// The machines end when this process ends.
process.exit(0);
