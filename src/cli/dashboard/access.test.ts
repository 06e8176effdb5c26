/** Shows by which host names a browser may reach the server, depending on the port. */
import { expect, test } from 'vitest';
import { refusalOf } from './access.ts';

function codeFor(port: number, host: string): number | undefined {
  const headers = { host, cookie: `refit-${port}=secret` };
  const url = new URL(`http://${host}/place/`);
  const rules = { port, place: '/place/', token: 'secret', allowsActions: false };
  return refusalOf({ method: 'GET', headers }, url, rules)?.code;
}

test.each([
  [8080, '127.0.0.1:8080', undefined],
  [8080, '127.0.0.1', 421],
  [80, '127.0.0.1', undefined],
  [80, 'localhost', undefined],
  [80, 'evil.example', 421],
  [80, 'localhost:8080', 421],
])(
  'whether a dashboard at port %i answers the Host %s is decided by name and port',
  (port, host, code) => {
    expect(codeFor(port, host)).toBe(code);
  },
);
