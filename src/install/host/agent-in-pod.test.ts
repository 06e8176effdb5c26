import { expect, test } from 'vitest';
import { environmentOfHost } from './agent-in-pod.ts';

test('the agent gets no variable that is right for the image only', () => {
  const ofImage = { PATH: '/usr/bin', SSL_CERT_FILE: '/etc/ssl/certs/ca-certificates.crt' };
  const { PATH, ...others } = environmentOfHost({ ...ofImage, MALLOC_ARENA_MAX: '1' });
  expect(others).toEqual({ MALLOC_ARENA_MAX: '1' });
  expect(PATH?.split(':')).toContain('/usr/local/sbin');
});

test('certificates that somebody names for the host stay', () => {
  expect(environmentOfHost({ SSL_CERT_FILE: '/etc/pki/own.pem' })).toMatchObject({
    SSL_CERT_FILE: '/etc/pki/own.pem',
  });
});
