/** Shows which texts of a source the page of messages lists. */
import { expect, test } from 'vitest';
import { messagesIn } from './messages.ts';

test.each([
  ['a text with a value', 'log.warn(`node ${node.name} is gone`);', ['node {name} is gone']],
  [
    'one of two words',
    "say(`${n} node${n === 1 ? '' : 's'} waiting for a slot`);",
    ['{n} node{|s} waiting for a slot'],
  ],
  ['a call', 'say(`no answer within ${formatDuration(time)}`);', ['no answer within {time}']],
  ['one text twice', "say('not ready yet'); say('not ready yet');", ['not ready yet']],
  ['single words, codes and paths', "say('Ready'); because('NodeNotReady', x); read('src/a.ts');", []],
  ['a script and the value of a header', 'run(`rm -f "$FILE" || exit 1`); send("Bearer of it");', []],
  ['imports, types and descriptions of fields', "type A = 'a long text'; z.string().describe('what it is for');", []],
])('%s', (_, source, messages) => {
  expect(messagesIn(source)).toEqual(messages);
});
