/**
 * Tests untrusted certificates, of the extension and of its callers. No Machine is replaced, and the update continues
 * when the certificates are right again.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthority, validFrom } from '../../../../tools/controlplane/certs.ts';
import type { Scene } from '../scene.ts';
import { discovered, setAuthority } from './registration.ts';
import { versionOfWorkers } from './uncovered.ts';
import { seenByCore, wantWorkers } from './update.ts';

const FAILED_CALLS = 3;

export async function wrongAuthority(scene: Scene): Promise<void> {
  const { checks, extension, options } = scene;
  const foreign = createAuthority({ commonName: 'foreign' }, validFrom(Date.now())).certificate;
  const before = await scene.identities('workers');
  const current = await versionOfWorkers(scene);
  const version = scene.nextVersion();
  const trusted = join(options.directory, 'hooks', 'ca.crt');
  await checks.check(
    'the extension trusts another CA than that of the managers: nothing happens',
    async () => {
      await scene.running.stop();
      await writeFile(trusted, foreign);
      await scene.startExtension('extension-foreign');
      await wantWorkers(scene, { version });
      await scene.failedCalls('core', 'CanUpdateMachineSet', FAILED_CALLS);
      return await scene.wrongAfter('workers', current, before);
    },
  );
  await checks.check(
    'it trusts the CA of the managers again: the update ends in place',
    async () => {
      await scene.running.stop();
      await writeFile(trusted, extension.authority);
      await scene.startExtension('extension-trusting');
      await scene.settled('workers', version);
      return await scene.wrongAfter('workers', version, before);
    },
  );
  const next = scene.nextVersion();
  await checks.check(
    'another CA in the ExtensionConfig: Discovered=False, and no Machine is replaced',
    async () => {
      await setAuthority(scene, foreign);
      await discovered(scene, 'False');
      await wantWorkers(scene, { version: next });
      await seenByCore(scene);
      const kept = await scene.identities('workers');
      return JSON.stringify([...kept]) === JSON.stringify([...before])
        ? []
        : ['the Machines are not the same'];
    },
  );
  await checks.check(
    'the right CA in the ExtensionConfig: Discovered=True, and the update ends in place',
    async () => {
      await setAuthority(scene, extension.authority);
      await discovered(scene, 'True');
      await scene.settled('workers', next);
      return await scene.wrongAfter('workers', next, before);
    },
  );
}
