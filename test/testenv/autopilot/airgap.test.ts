/**
 * Tests both ap-airgap scenarios of k0s: bundles for a worker together with its update, and for a controller that is
 * also a worker.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PlanCommand } from '../../../src/api/autopilot/plan.ts';
import { listed } from '../../support/builders/plans.ts';
import { forbiddenIn } from '../audit.ts';
import { FROM, pairsWith, type Scene, targetsIn, useScene } from './scene.ts';

const BUNDLE = randomBytes(100_000);
const PATH = '/dist/bundle.tar';
const directory = await mkdtemp(join(tmpdir(), 'refit-bundle-'));
const files = { [PATH]: join(directory, 'bundle.tar') };
beforeAll(async () => await writeFile(files[PATH] ?? '', BUNDLE));
afterAll(async () => await rm(directory, { recursive: true }));

function bundleFor(at: Scene, name: string): PlanCommand {
  const platforms = { 'linux-amd64': { url: at.downloads.url + PATH } };
  return { airgapupdate: { version: 'v0.0.0', platforms, workers: listed(name) } };
}

async function expectBundleOn(at: Scene, name: string): Promise<void> {
  const found = await readFile(join(at.host(name).dataDirectory, 'images', 'bundle.tar'));
  expect(found.equals(BUNDLE)).toBe(true);
}

const fetches = (at: Scene): number =>
  at.downloads.requests.filter(({ path }) => path === PATH).length;

describe.each(pairsWith(1))('%s', (_name, combination) => {
  const isOurs = combination.agents === 'refit';

  describe('ap-airgap', () => {
    const scene = useScene(combination, { controllers: 1, workers: 1, files });
    const title = isOurs ? 'fetched once' : 'differs: fetched once or more';

    test(`a node has its airgap bundle before any service restarts, ${title}`, async () => {
      const at = scene();
      const update = at.forced({ controllers: listed('controller1'), workers: listed('worker1') });
      await at.create('airgap', bundleFor(at, 'worker1'), update);
      const plan = await at.ends('Completed');
      expect(targetsIn(plan)).toEqual(
        ['worker1', 'controller1', 'worker1'].map((name) => `${name} SignalCompleted`),
      );
      expect(plan.status?.commands.map(({ id, state }) => [id, state])).toEqual([
        [0, 'Completed'],
        [1, 'Completed'],
      ]);
      await expectBundleOn(at, 'worker1');
      // Agents of k0s repeat the download whenever their Node has changed meanwhile, even after the first one has ended
      // and the update has begun.
      if (isOurs) expect(fetches(at)).toBe(1);
      else expect(fetches(at)).toBeGreaterThanOrEqual(1);
      expect(at.downloads.requests[0]?.path).toBe(PATH);
      // Agents of k0s before 1.36.3+k0s.1 may request a restart twice.
      for (const name of ['controller1', 'worker1']) {
        if (isOurs) expect(at.host(name).starts).toBe(2);
        else expect(at.host(name).starts).toBeGreaterThanOrEqual(2);
      }
      expect(forbiddenIn(await at.audited('"forbid"'))).toEqual([]);
    });
  });

  describe('ap-airgap on a controller that is a worker too', () => {
    const scene = useScene(combination, {
      controllers: 1,
      workers: 0,
      files,
      serviceFlags: ['--enable-worker'],
    });

    test('the controller takes the signal on its Node, and nothing is restarted', async () => {
      const at = scene();
      await at.create('airgap', bundleFor(at, 'controller1'));
      expect(targetsIn(await at.ends('Completed'))).toEqual(['controller1 SignalCompleted']);
      await expectBundleOn(at, 'controller1');
      expect([at.host('controller1').starts, await at.host('controller1').version()]).toEqual([
        1,
        FROM,
      ]);
      expect(forbiddenIn(await at.audited('"forbid"'))).toEqual([]);
    });
  });
});
