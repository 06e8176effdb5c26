/**
 * Compares all messages of an update with the schema of the hooks, and compares this schema with the source of this
 * release.
 */
import { isDeepStrictEqual } from 'node:util';
import { definitions } from '../../../../sandbox/cluster/hook-schema.ts';
import type { HookTypes } from '../managers/programs.ts';
import { Middleman } from '../middleman.ts';
import type { Scene } from '../scene.ts';
import { readSchema } from '../schema/read-schema.ts';
import { useAddress } from './registration.ts';
import { update } from './update.ts';

const HOOKS = ['CanUpdateMachine', 'CanUpdateMachineSet', 'UpdateMachine'];
const KINDS = HOOKS.flatMap((hook) => [`${hook}Request`, `${hook}Response`]);

export async function schema({ checks }: Scene, types: HookTypes): Promise<void> {
  await checks.check(
    "the schema that tests use is that of this release's types and definitions",
    async () => {
      const own = await readSchema(types);
      const names = new Set([...Object.keys(own), ...Object.keys(definitions)]);
      return [...names]
        .filter((name) => !isDeepStrictEqual(own[name], definitions[name]))
        .map((name) => `${name} differs`);
    },
  );
}

/** Updates all Machines in place, with a `Middleman` that records the messages. */
export async function observed(scene: Scene): Promise<void> {
  const { checks, extension, managers } = scene;
  {
    await using middleman = await Middleman.start(scene);
    await useAddress(scene, middleman.url);
    const before = await managers.calls('core', 'CanUpdateMachineSet');
    await update(scene);
    await checks.check(
      'each message of managers and extension is as in the schema of the hooks',
      () => {
        const counts = middleman.counts();
        scene.options.log(`  ${KINDS.map((kind) => `${counts[kind] ?? 0} × ${kind}`).join(', ')}`);
        const missing = KINDS.filter((kind) => counts[kind] === undefined);
        return [...missing.map((kind) => `there was no ${kind}`), ...middleman.problems()];
      },
    );
    await checks.check(
      'one question was enough for all Machines of the MachineDeployment',
      async () => {
        const after = await managers.calls('core', 'CanUpdateMachineSet');
        const answered = after.all - after.failed - (before.all - before.failed);
        return answered === 1 ? [] : [`${answered} questions were answered`];
      },
    );
    await useAddress(scene, extension.url);
  }
}
