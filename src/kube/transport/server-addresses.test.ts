/** Tests which address is used next. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { type ServerAddress, serverAddresses } from './server-addresses.ts';

const at = (host: string): ServerAddress => ({ host, port: 6443 });
const OWN = at('own');
const A = at('10.0.0.1');
const B = at('10.0.0.2');

test('the own address, unless it failed lately; then the others in their order; then the oldest failure', async () => {
  const clock = new FakeClock();
  const addresses = serverAddresses(OWN, clock);
  addresses.failed(OWN);
  expect(addresses.next()).toBe(OWN);
  addresses.learn([A, OWN, B]);
  expect([addresses.count, addresses.next()]).toEqual([3, A]);
  await clock.advance(1);
  addresses.failed(A);
  await clock.advance(1);
  addresses.failed(B);
  expect(addresses.next()).toBe(OWN);
  addresses.failed(OWN);
  expect(addresses.next()).toBe(A);
  await clock.advance(10_001);
  expect(addresses.next()).toBe(OWN);
});

test('what is not there any more comes last, and there is an end to it', () => {
  const addresses = serverAddresses(OWN, new FakeClock());
  addresses.failed(OWN);
  addresses.learn([A]);
  addresses.learn([B]);
  expect([addresses.count, addresses.next()]).toEqual([3, B]);
  addresses.learn(Array.from({ length: 30 }, (_, index) => at(`10.0.1.${index}`)));
  expect(addresses.count).toBe(17);
});
