/** Tests which environment variables lead to which collector, and that no error shows a secret. */
import { expect, test } from 'vitest';
import { traceChoice } from './settings.ts';

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const TRACES = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
const HEADERS = 'OTEL_EXPORTER_OTLP_HEADERS';
const BASE = { [ENDPOINT]: 'http://collector:4318' };

test.each<[string, Readonly<Record<string, string>>, string | undefined]>([
  ['nothing', {}, undefined],
  ['an empty value', { [ENDPOINT]: ' ' }, undefined],
  ['the endpoint of all signals', BASE, 'http://collector:4318/v1/traces'],
  ['one with a slash', { [ENDPOINT]: 'http://c:4318/' }, 'http://c:4318/v1/traces'],
  ['one with a path', { [ENDPOINT]: 'https://c/otlp' }, 'https://c/otlp/v1/traces'],
  ['that of traces is used as it is', { ...BASE, [TRACES]: 'https://t/mine' }, 'https://t/mine'],
  ['switched off', { ...BASE, OTEL_SDK_DISABLED: 'true' }, undefined],
  ['without traces', { ...BASE, OTEL_TRACES_EXPORTER: 'none' }, undefined],
])('%s', (_name, environment, url) => {
  const { settings, problem } = traceChoice(environment);
  expect(settings?.url.href).toBe(url);
  expect(problem).toBeUndefined();
});

test('headers and attributes are lists, percent-encoded', () => {
  const environment = {
    ...BASE,
    [HEADERS]: 'Authorization=Bearer%20abc%3D, x-tenant = one',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test,service.name=other',
    OTEL_SERVICE_NAME: 'mine',
  };
  expect(traceChoice(environment).settings).toMatchObject({
    headers: { authorization: 'Bearer abc=', 'x-tenant': 'one' },
    resource: { 'deployment.environment': 'test', 'service.name': 'mine' },
  });
  expect(traceChoice(BASE).settings).toMatchObject({
    headers: {},
    resource: { 'service.name': 'refit' },
  });
});

test('a collector that takes only gRPC gets nothing, and the problem is named', () => {
  const { settings, problem } = traceChoice({ ...BASE, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' });
  expect(settings).toBeUndefined();
  expect(problem).toContain('http/json');
});

test.each<[string, Readonly<Record<string, string>>, string]>([
  ['no URL', { [ENDPOINT]: 'collector:4318' }, `${ENDPOINT} must be a URL`],
  ['another protocol', { [TRACES]: 'ftp://c/secret' }, `${TRACES} must be a URL`],
  ['a password in it', { [ENDPOINT]: 'http://me:secret@c' }, `${ENDPOINT} must be a URL`],
  ['a header without value', { ...BASE, [HEADERS]: 'a=1,secret' }, `${HEADERS}: entry 2`],
  ['a bad escape', { ...BASE, [HEADERS]: 'a=%secret' }, `${HEADERS}: entry 1`],
  ['a line break', { ...BASE, [HEADERS]: 'a=secret%0d%0ab' }, 'a header that cannot be sent'],
  ['a header of the request', { ...BASE, [HEADERS]: 'Host=secret' }, 'cannot be sent'],
])('%s is an error', (_name, environment, message) => {
  const read = (): unknown => traceChoice(environment);
  expect(read).toThrow(message);
  expect(read).not.toThrow('secret');
});
