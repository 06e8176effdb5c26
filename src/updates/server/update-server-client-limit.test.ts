/** Proves which addresses count as one client. */
import { expect, test } from 'vitest';
import { clientOf } from './update-server.ts';

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['2001:db8:1::', '2001:db8:1:0'],
  ['::1', ':0:0:0'],
])('the address %s counts as the client %s', (address, client) => {
  expect(clientOf(address)).toBe(client);
});
