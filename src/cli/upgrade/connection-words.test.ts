/** Tests that a printed command goes to the same cluster as the command that printed it. */
import { expect, test } from 'vitest';
import { connectionWords } from './connection-words.ts';

test('the flags of the user are written, each as one word of a shell', () => {
  const flags = { kubeconfig: 'my files/a', context: 'prod', as: "o'neil", asGroup: ['a', 'b'] };
  expect(connectionWords(flags)).toBe(
    ` --kubeconfig 'my files/a' --context prod --as 'o'\\''neil' --as-group a --as-group b`,
  );
});

test('nothing is written for flags that the user has not given', () => {
  expect(connectionWords({})).toBe('');
});
