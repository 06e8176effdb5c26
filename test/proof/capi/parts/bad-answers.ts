/**
 * Tests wrong answers of the extension, and of an updater that the extension calls. A caller that accepted such an
 * answer would end the update at once.
 */
import { updaterSets } from '../../../../src/api/refit/updater-set.ts';
import { freePort } from '../../../../tools/controlplane/ports.ts';
import { conditionOf } from '../machines/settled.ts';
import { Middleman } from '../middleman.ts';
import type { Scene } from '../scene.ts';
import { useAddress } from './registration.ts';
import { missing, startExample } from './two-updaters.ts';
import { useUpdaters, versionOfWorkers, wantFile } from './uncovered.ts';
import { wantWorkers } from './update.ts';

const TIMES = 3;
const FILE = '/etc/two-updaters';

export async function badAnswers(scene: Scene): Promise<void> {
  await errorsOfTheExtension(scene);
  await negativeTimeOfAnUpdater(scene);
}

/**
 * Tests HTTP 500 from the extension. With the failurePolicy Ignore, core would treat each of these answers as the end
 * of the update.
 */
async function errorsOfTheExtension(scene: Scene): Promise<void> {
  const before = await scene.identities('workers');
  const version = scene.nextVersion();
  let left = TIMES;
  await using middleman = await Middleman.start(scene, {
    spoil: (kind) =>
      kind === 'UpdateMachineRequest' && left-- > 0 ? { status: 500, body: '' } : undefined,
  });
  await useAddress(scene, middleman.url);
  await scene.checks.check(
    'HTTP 500 instead of an answer to UpdateMachine: no Machine counts as updated',
    async () => {
      await wantWorkers(scene, { version });
      await scene.settled('workers', version);
      const wrong = await scene.wrongAfter('workers', version, before);
      return left < 0 ? wrong : [...wrong, `only ${TIMES - left} answers were spoilt`];
    },
  );
  await useAddress(scene, scene.extension.url);
}

/**
 * Tests a negative `retryAfterSeconds` from an updater. Core would treat this answer as the end of the update as well.
 */
async function negativeTimeOfAnUpdater(scene: Scene): Promise<void> {
  const { checks, cluster, extension } = scene;
  const port = await freePort();
  const files = await startExample(scene, port);
  let left = TIMES;
  const bad = { status: 'Success', message: 'done', retryAfterSeconds: -1 };
  await using middleman = await Middleman.start(scene, {
    url: `https://127.0.0.1:${port}`,
    spoil: (kind, { status, body }) =>
      kind === 'UpdateMachineRequest' && left-- > 0
        ? { status, body: JSON.stringify({ ...(JSON.parse(body) as object), ...bad }) }
        : undefined,
  });
  const caBundle = Buffer.from(extension.authority).toString('base64');
  await useUpdaters(scene, {
    uncovered: 'Refuse',
    updaters: [
      { name: 'files', url: middleman.url, caBundle, clientCertificate: 'updaters' },
      { name: 'refit', refit: {} },
    ],
  });
  const before = await scene.identities('workers');
  const version = await versionOfWorkers(scene);
  await checks.check(
    'retryAfterSeconds -1 of an updater: its step is not done, and the Machine says so',
    async () => {
      await wantFile(scene, FILE);
      let said = '';
      await scene.until('a Machine that tells of the answer', async () => {
        const all = (await scene.machines('workers')).map(
          (machine) => conditionOf(machine, 'Updating')?.message ?? '',
        );
        said = all.find((message) => message.includes('retryAfterSeconds')) ?? '';
        return said !== '' || left <= 0;
      });
      await scene.settled('workers', version);
      const wrong = [
        ...(await scene.wrongAfter('workers', version, before)),
        ...(await missing(scene, before.keys())),
      ];
      return said === '' ? ['no Machine said what is wrong with the answer', ...wrong] : wrong;
    },
  );
  await cluster.client.delete(updaterSets, 'in-place');
  await files.stop();
}
