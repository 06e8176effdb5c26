/**
 * Tests that a call may allow fewer bytes than the client, and that the error of a larger answer differs from other
 * errors.
 */
import { expect, test } from 'vitest';
import { sendJson, startStubServer } from '../../../test/faults/stub-server.ts';
import { pods } from '../resources.ts';
import { isTooLarge } from '../status-error.ts';
import { createClient } from './http-client.ts';

test.each<[string, number, number | undefined, boolean]>([
  ['the client allows it', 2_000, undefined, false],
  ['the call allows less than the client', 2_000, 500, true],
  ['the call allows enough', 2_000, 1_500, false],
  ['the client allows less than the call', 500, 1_500, true],
])('a list of more than 1,000 bytes: %s', async (_title, mostBytes, ofCall, expected) => {
  await using server = await startStubServer((_request, response) =>
    sendJson(response, 200, { metadata: { more: 'x'.repeat(1_000) }, items: [] }),
  );
  using client = createClient(server.config, { mostBytes });
  const problem = await client.list(pods, { mostBytes: ofCall }).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(problem !== undefined).toBe(expected);
  expect(isTooLarge(problem)).toBe(expected);
});
