/** Tests that the help shows each command once, in one of five groups. */
import { expect, test } from 'vitest';
import { MODULES } from '../dialects/modules.ts';
import { COMMAND_GROUPS, inGroups } from './command-groups.ts';
import { commandsOf } from './commands.ts';

test('each command stands in exactly one of the five groups of the help, and each group has only commands', async () => {
  const commands = await commandsOf(MODULES);
  const names = COMMAND_GROUPS.flatMap((group) => group.names);
  expect(COMMAND_GROUPS).toHaveLength(5);
  expect([...commands.map(({ name }) => name), 'help']).toEqual(names);
});

test('a command without a group is refused', () => {
  expect(() => inGroups([{ name: 'new', summary: 'Is new.' }])).toThrow(
    'the command new has no group in the help',
  );
});
