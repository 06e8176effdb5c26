/** Tests that the help shows each command in one of five groups. */
import { expect, test } from 'vitest';
import { GROUP_TITLES } from '../cli/group-titles.ts';
import { MODULES } from '../dialects/modules.ts';
import { inGroups } from './command-groups.ts';
import { commandsOf } from './commands.ts';

test('each command stands in one of the five groups of the help, in their order', async () => {
  const titles = Object.values(GROUP_TITLES);
  const found = (await commandsOf(MODULES)).map(({ group }) => group);
  expect([...new Set(found)]).toEqual(titles);
  expect(found).toEqual(titles.flatMap((title) => found.filter((each) => each === title)));
});

test('what people type first is the first command of its group', async () => {
  const commands = await commandsOf(MODULES);
  const firstOf = (title: string) => commands.find(({ group }) => group === title)?.name;
  expect(firstOf(GROUP_TITLES.see)).toBe('status');
  expect(firstOf(GROUP_TITLES.control)).toBe('upgrade');
});

test('a command without a group is refused', () => {
  expect(() => inGroups([{ name: 'new', summary: 'Is new.' }])).toThrow(
    'the command new has no group in the help',
  );
});
