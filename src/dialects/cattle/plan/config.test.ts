/** Proves how the environment is read, and that invalid values get the defaults of the original. */
import { expect, test } from 'vitest';
import type { Logger } from '../../../util/log.ts';
import { silentLogger } from '../../../util/log.ts';
import {
  controllerSettings,
  DEFAULT_JOB_SETTINGS,
  deadlineOf,
  flag,
  isSet,
  type JobSettings,
  jobSettings,
  leaseTimes,
  pollingInterval,
  versionSettings,
} from './config.ts';

test('without environment variables, Refit uses the defaults for Jobs, leases and polling', () => {
  expect(jobSettings({ SYSTEM_UPGRADE_JOB_KUBECTL_IMAGE: '' }, silentLogger)).toEqual(
    DEFAULT_JOB_SETTINGS,
  );
  expect(leaseTimes({}, silentLogger)).toEqual({
    leaseDurationMs: 45_000,
    renewDeadlineMs: 30_000,
    retryPeriodMs: 2000,
  });
  expect(pollingInterval({}, silentLogger)).toBe(900_000);
});

test('each SYSTEM_UPGRADE_JOB environment variable changes its setting', () => {
  const env = {
    SYSTEM_UPGRADE_JOB_ACTIVE_DEADLINE_SECONDS: '900',
    SYSTEM_UPGRADE_JOB_ACTIVE_DEADLINE_SECONDS_MAX: '1000',
    SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: '99',
    SYSTEM_UPGRADE_JOB_IMAGE_PULL_POLICY: 'Always',
    SYSTEM_UPGRADE_JOB_KUBECTL_IMAGE: 'kubectl:1',
    SYSTEM_UPGRADE_JOB_KUBECTL_IMAGE_WINDOWS: 'kubectl:w',
    SYSTEM_UPGRADE_JOB_PRIVILEGED: 'f',
    SYSTEM_UPGRADE_JOB_TTL_SECONDS_AFTER_FINISH: '1',
    SYSTEM_UPGRADE_JOB_POD_REPLACEMENT_POLICY: 'Failed',
    SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB: 'false',
  };
  expect(Object.values(jobSettings(env, silentLogger))).toEqual([
    900,
    1000,
    99,
    'Always',
    'kubectl:1',
    'kubectl:w',
    false,
    1,
    'Failed',
    false,
  ]);
});

test('each variable of the election reaches its time', () => {
  const env = {
    CATTLE_ELECTION_LEASE_DURATION: '1m',
    CATTLE_ELECTION_RENEW_DEADLINE: '40s',
    CATTLE_ELECTION_RETRY_PERIOD: '1500ms',
  };
  expect(leaseTimes(env, silentLogger)).toEqual({
    leaseDurationMs: 60_000,
    renewDeadlineMs: 40_000,
    retryPeriodMs: 1500,
  });
});

test.each([
  ['+5', 5],
  ['-1', -1],
  ['0', 0],
  ['5x', 2],
  ['x5', 2],
  ['1.5', 2],
])('a number of "%s" is %s', (text, wanted) => {
  const { backoffLimit } = jobSettings({ SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: text }, silentLogger);
  expect(backoffLimit).toBe(wanted);
});

test('what cannot be read is logged with the value that is used instead', () => {
  const told: unknown[] = [];
  const log: Logger = {
    ...silentLogger,
    error: (message, fields) => told.push({ message, ...fields }),
  };
  leaseTimes({ CATTLE_ELECTION_RETRY_PERIOD: 'soon', CATTLE_ELECTION_LEASE_DURATION: '' }, log);
  pollingInterval({ SYSTEM_UPGRADE_PLAN_POLLING_INTERVAL: '20m' }, log);
  pollingInterval({ SYSTEM_UPGRADE_PLAN_POLLING_INTERVAL: 'now' }, log);
  expect(told).toEqual([
    {
      message: 'invalid environment variable, using the default',
      name: 'CATTLE_ELECTION_RETRY_PERIOD',
      value: 'soon',
      used: 2000,
    },
    {
      message: 'invalid environment variable, using the default',
      name: 'SYSTEM_UPGRADE_PLAN_POLLING_INTERVAL',
      value: 'now',
      used: 900_000,
    },
  ]);
});

test('what cannot be read is logged, and the default counts', () => {
  const told: unknown[] = [];
  const log: Logger = { ...silentLogger, error: (_message, fields) => told.push(fields?.['name']) };
  const env = { SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: 'many', SYSTEM_UPGRADE_JOB_PRIVILEGED: 'yes' };
  expect(jobSettings(env, log)).toEqual(DEFAULT_JOB_SETTINGS);
  expect(told).toEqual(Object.keys(env));
});

test.each([
  ['30m', 1_800_000],
  ['61s', 61_000],
  ['1m', 900_000],
  ['soon', 900_000],
])('a polling interval of %s', (text, milliseconds) => {
  expect(pollingInterval({ SYSTEM_UPGRADE_PLAN_POLLING_INTERVAL: text }, silentLogger)).toBe(
    milliseconds,
  );
});

test.each([
  ['1', true],
  ['t', true],
  ['T', true],
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['0', false],
  ['f', false],
  ['F', false],
  ['false', false],
  ['False', false],
  ['FALSE', false],
  ['yes', undefined],
  ['10', undefined],
  ['01', undefined],
  ['untrue', undefined],
  ['falsely', undefined],
  ['', undefined],
])('"%s" as a truth', (text, value) => {
  expect(flag(text)).toBe(value);
});

test.each<[number | undefined, Partial<JobSettings>, number | undefined]>([
  [12_345, {}, 12_345],
  [undefined, { activeDeadlineSeconds: 300 }, 300],
  [0, { activeDeadlineSeconds: 300 }, undefined],
  [-1, { activeDeadlineSeconds: 3600 }, 3600],
  [600, { activeDeadlineSecondsMax: 300 }, 300],
  [0, { activeDeadlineSecondsMax: 300 }, 300],
  [200, { activeDeadlineSecondsMax: 300 }, 200],
  [undefined, { activeDeadlineSeconds: 0 }, undefined],
])('a deadline of %s with %j', (own, settings, wanted) => {
  expect(deadlineOf(own, { ...DEFAULT_JOB_SETTINGS, ...settings })).toBe(wanted);
});

const NAMED = {
  SYSTEM_UPGRADE_CONTROLLER_NAME: 'suc',
  SYSTEM_UPGRADE_CONTROLLER_NAMESPACE: 'system-upgrade',
};

test('the controller has a name and a namespace, and may have addresses', () => {
  const names = { name: 'suc', namespace: 'system-upgrade' };
  expect(controllerSettings(NAMED)).toEqual({ ...names, apiPort: 6443, sender: {} });
  const addresses = {
    SYSTEM_UPGRADE_CONTROLLER_MASTER_URL: 'https://10.0.0.1:6443/',
    SYSTEM_UPGRADE_CONTROLLER_HEALTH_ADDRESS: ':8080',
    SYSTEM_UPGRADE_CONTROLLER_API_PORT: '7443',
    SYSTEM_UPGRADE_CONTROLLER_CLUSTER_NAME: 'prod',
    SYSTEM_UPGRADE_CONTROLLER_UI_URL: 'https://refit.example.org',
  };
  expect(controllerSettings({ ...NAMED, ...addresses })).toEqual({
    ...names,
    server: 'https://10.0.0.1:6443',
    healthAddress: ':8080',
    apiPort: 7443,
    sender: { cluster: 'prod', pageUrl: 'https://refit.example.org' },
  });
});

test.each([
  ['NAME', '', 'is not set'],
  ['NAME', ' ', 'is " ", expected the value of a label'],
  ['NAME', 'my controller', 'is "my controller", expected the value of a label'],
  ['NAMESPACE', '', 'is not set'],
  ['API_PORT', '0', 'is "0", expected a port from 1 to 65535'],
  ['API_PORT', '6443/tcp', 'is "6443/tcp", expected a port from 1 to 65535'],
  ['NAMESPACE', 'My NS', 'is "My NS", but must consist of lower-case letters'],
  [
    'UI_URL',
    'refit.example.org',
    'is refit.example.org: write an http or https address without a fragment',
  ],
  ['UI_URL', 'https://a#b', 'is https://a#***: write an http or https address without a fragment'],
  ['MASTER_URL', 'banana', 'is not an http or https URL: banana'],
  ['MASTER_URL', '10.0.0.1:6443', 'is not an http or https URL: 10.0.0.1:6443'],
  ['HEALTH_ADDRESS', '8080', 'is "8080": use host:port'],
])('the variable %s with the value %j is refused by its name', (name, value, message) => {
  const variable = `SYSTEM_UPGRADE_CONTROLLER_${name}`;
  expect(() => controllerSettings({ ...NAMED, [variable]: value })).toThrow(
    `${variable} ${message}`,
  );
});

test('a variable that is neither true nor false is logged, and counts as false', () => {
  const told: unknown[] = [];
  const log: Logger = { ...silentLogger, error: (_message, fields) => told.push(fields) };
  const name = 'SYSTEM_UPGRADE_CONTROLLER_LEADER_ELECT';
  expect(isSet({ [name]: 'true' }, 'LEADER_ELECT', log)).toBe(true);
  expect(isSet({}, 'LEADER_ELECT', log)).toBe(false);
  expect(told).toEqual([]);
  expect(isSet({ [name]: 'yes' }, 'LEADER_ELECT', log)).toBe(false);
  expect(told).toEqual([{ name, value: 'yes', used: false }]);
});

test('the rules about versions apply unless a variable switches them off, and mirrors have a variable', () => {
  expect(versionSettings({}, silentLogger)).toEqual({ installers: [], checksVersions: true });
  const env = {
    SYSTEM_UPGRADE_INSTALLER_IMAGES: 'mirrored-k3s, example.com:5000/rke2',
    SYSTEM_UPGRADE_REFIT_CHECKS: 'false',
  };
  expect(versionSettings(env, silentLogger)).toEqual({
    installers: ['mirrored-k3s', 'example.com:5000/rke2'],
    checksVersions: false,
  });
});
