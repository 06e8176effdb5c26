/** Shows what a watch remembers of the API server's answers. */
import { expect, test } from 'vitest';
import { later, SECOND, T0 } from '../../../test/builders/times.ts';
import { FakeClock } from '../../../test/faults/fake-clock.ts';
import { Contact } from './session.ts';

test('the API server is silent since the first request without an answer, until the next answer', async () => {
  const clock = new FakeClock(T0);
  const contact = new Contact(clock);
  const seen: (string | undefined)[] = [];
  for (const code of [200, 0, 0, 403, 0]) {
    contact.note({ code });
    seen.push(contact.silentSince);
    await clock.advance(SECOND);
  }
  expect(seen).toEqual([undefined, later(SECOND), later(SECOND), undefined, later(4 * SECOND)]);
});
