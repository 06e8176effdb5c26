/**
 * Tests an extension that does not run, and a second extension for the same hooks. No Machine is replaced, and the
 * update continues afterwards.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Scene } from '../scene.ts';
import { registerAgain, unregister } from './registration.ts';
import { setsOf, versionOfWorkers } from './uncovered.ts';
import { wantWorkers } from './update.ts';

const FAILED_CALLS = 3;
const SECOND = 'second';
/** The message in core's log. Cluster API reports this error nowhere else. */
const STALLED = 'found multiple CanUpdateMachineSet hooks';

export async function noAnswer(scene: Scene): Promise<void> {
  const { checks } = scene;
  const before = await scene.identities('workers');
  const current = await versionOfWorkers(scene);
  const version = scene.nextVersion();
  const sets = await setsOf(scene);
  await checks.check(
    'the extension is away: no Machine is replaced, and there is no new MachineSet',
    async () => {
      await scene.running.stop();
      await wantWorkers(scene, { version });
      await scene.failedCalls('core', 'CanUpdateMachineSet', FAILED_CALLS);
      const wrong = await scene.wrongAfter('workers', current, before);
      return [...wrong, ...((await setsOf(scene)) === sets ? [] : ['there is a new MachineSet'])];
    },
  );
  await checks.check('it is back: the update ends in place', async () => {
    await scene.startExtension('extension-back');
    await scene.settled('workers', version);
    return await scene.wrongAfter('workers', version, before);
  });
  const next = scene.nextVersion();
  await checks.check(
    'a second ExtensionConfig for the same hooks: no Machine is touched',
    async () => {
      await registerAgain(scene, SECOND);
      await wantWorkers(scene, { version: next });
      const log = join(scene.options.directory, 'logs', 'cluster-api-core.log');
      await scene.until('a refusal in the log of core', async () =>
        (await readFile(log, 'utf8')).includes(STALLED),
      );
      return await scene.wrongAfter('workers', version, before);
    },
  );
  await checks.check('it is deleted: the update ends in place', async () => {
    await unregister(scene, SECOND);
    await scene.settled('workers', next);
    return await scene.wrongAfter('workers', next, before);
  });
}
