/**
 * Tests a state directory that an attacker has prepared. Otherwise root could write its journal where the attacker
 * wants, or read a journal of the attacker.
 */
import { chmod, chown, lchown, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Attacker, attackAsNobody, NOBODY, startNode, useCluster } from './rig.ts';

useCluster();

/** Returns the output of an agent with this state directory, which ends at its start. */
async function refusal(
  prepare: (state: string, attacker: Attacker) => Promise<void>,
): Promise<string> {
  await using attacker = await Attacker.arrive();
  await using node = await startNode();
  const state = join(attacker.directory, 'state');
  await prepare(state, attacker);
  const agent = node.startAgent('--state-dir', state);
  expect(await agent.exited).not.toBe(0);
  return agent.log.join('\n');
}

attackAsNobody("in another user's directory it is refused", async () => {
  expect(await refusal(async (state) => await mkdir(state))).toContain(`belongs to user ${NOBODY}`);
});

attackAsNobody('one that others may write to is refused', async () => {
  const text = await refusal(async (state, { directory }) => {
    await chown(directory, 0, 0);
    await mkdir(state);
    await chmod(state, 0o777);
  });
  expect(text).toContain('others may write to');
});

attackAsNobody('one that is their symbolic link is refused', async () => {
  const text = await refusal(async (state, { directory }) => {
    await symlink('/var', state);
    await chown(directory, 0, 0);
    await lchown(state, NOBODY, NOBODY);
  });
  expect(text).toContain(`belongs to user ${NOBODY}`);
});

test('a symbolic link that was left in it is not written through', async () => {
  const text = await refusal(async (state, { directory }) => {
    if (process.getuid?.() === 0) await chown(directory, 0, 0);
    await mkdir(state);
    const victim = join(directory, 'victim');
    await writeFile(victim, 'precious');
    await symlink(victim, join(state, 'journal.json.new'));
  });
  expect(text).toContain('journal.json.new in it is a symbolic link');
});

attackAsNobody('a journal in it that others may write to is not read', async () => {
  const text = await refusal(async (state, { directory }) => {
    await chown(directory, 0, 0);
    await mkdir(state);
    await writeFile(join(state, 'journal.json'), '{}');
    await chmod(join(state, 'journal.json'), 0o666);
  });
  expect(text).toContain('others may write to');
});
