/**
 * Defines the schema and the types of the UpdaterSet. It says which updater makes which changes of a Cluster API
 * Machine in place, and in which order.
 */
import { z } from 'zod';
import { clusterScoped, type KubeObject } from '../../kube/resources.ts';
import { type CustomKind, choice, LONGEST, list, object, optional, time } from '../crd.ts';
import { boundedSelectorSchema, rules } from './policy-values.ts';
import { conditionsSchema } from './upgrade-policy.ts';

/** Matches the URLs that Cluster API accepts for an ExtensionConfig: they have no user, no query and no fragment. */
const URL_PATTERN = /^https:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/;
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const BASE64 = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const LABEL_ADVICE = 'is not a name; use lower-case letters, digits and "-"';
const label = (what: string) => z.string().regex(LABEL, LABEL_ADVICE).max(63).describe(what);
const handler = (hook: string) => label(`The handler for ${hook}.`).exactOptional();

const isOwn = '(has(self.refit) || has(self.nodeConfiguration))';
const isOneServer =
  '[has(self.refit), has(self.nodeConfiguration), has(self.url), has(self.service)].exists_one(given, given)';
const hasAuthority = `${isOwn} != has(self.caBundle)`;
const isForServer = `!${isOwn} || !(has(self.clientCertificate) || has(self.handlers))`;

const updaterSchema = object('One updater.', {
  name: label('The name of the updater in messages. It must be unique in the list.'),
  refit: object("Refit's own updater, which changes `spec.version`.", {}).exactOptional(),
  nodeConfiguration: object(
    "Refit's own updater, which changes files, keys of users and arguments of the kubelet on nodes whose agents allow it.",
    {},
  ).exactOptional(),
  url: optional(
    'The server of the updater, such as `https://updater.example.com`.',
    z
      .string()
      .regex(
        URL_PATTERN,
        'expected an https URL without user, query and fragment, such as https://updater.example.com',
      )
      .max(512),
  ),
  service: object('A Service in the cluster of the extension.', {
    namespace: label('The namespace of the Service.'),
    name: label('The name of the Service.'),
    path: optional(
      'The path that comes before the path of each hook.',
      z.string().regex(/^\//, 'is not a path; begin it with /').max(512),
    ),
    port: optional('The port of the Service; 443 by default.', z.int().min(1).max(65_535)),
  }).exactOptional(),
  caBundle: optional(
    'The CA of the certificate of the updater, as base64 of PEM. No other CA is trusted.',
    z
      .string()
      .regex(BASE64, 'is not base64; encode the PEM file with base64')
      .min(4)
      .max(51_200)
      .meta({ format: 'byte' }),
  ),
  clientCertificate: label(
    'The folder below `--updater-certs` with the `tls.crt` and `tls.key` that Refit presents to the updater; none by default.',
  ).exactOptional(),
  handlers: object(
    'The names of the handlers of the updater. By default Refit uses the names that the Discovery hook of the updater returns.',
    {
      canUpdateMachine: handler('CanUpdateMachine'),
      canUpdateMachineSet: handler('CanUpdateMachineSet'),
      updateMachine: handler('UpdateMachine'),
    },
  ).exactOptional(),
  selector: optional(
    'Refit asks the updater only about Machines with these labels, and about MachineSets whose template has them.',
    boundedSelectorSchema,
  ),
  settings: optional(
    'Settings that Refit sends with each call, instead of the settings of the ExtensionConfig.',
    z.record(z.string().max(253), z.string().max(4096)).meta({ maxProperties: 100 }),
  ),
  timeoutSeconds: optional(
    'Timeout of each call in seconds; 3 by default. A call gets less time if the updaters after this one need it.',
    z.int().min(1).max(10),
  ),
  onUnavailable: choice(
    'What happens if the updater gives no valid answer to CanUpdateMachine or CanUpdateMachineSet. `Wait`, the default: nothing is replaced until it ' +
      'answers, unless the other updaters cover every change. `Skip`: Refit acts as if this updater covered no change. `Refuse`: nothing is ' +
      'accepted, and nothing is replaced. UpdateMachine always waits for the answer.',
    'Skip',
    'Wait',
    'Refuse',
  ),
}).meta(
  rules(
    [isOneServer, 'exactly one of refit, nodeConfiguration, url and service must be set'],
    [hasAuthority, 'caBundle must be set with url or service, and only then'],
    [isForServer, 'clientCertificate and handlers are only for updaters with url or service'],
  ),
);

const specSchema = object('The updaters, and the Machines that they update.', {
  selector: optional(
    'Machines with these labels, and MachineSets whose template has them; all by default.',
    boundedSelectorSchema,
  ),
  updaters: z
    .array(updaterSchema)
    .min(1)
    .max(10)
    .meta({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      ...rules([
        'self.filter(updater, has(updater.refit)).size() < 2',
        'only one updater may be refit',
      ]),
    })
    .describe(
      'The updaters. Refit asks them in this order, each about the changes that the earlier ones do not cover.',
    ),
  uncovered: choice(
    'What happens to a change that no updater covers. `Replace`, the default: Cluster API replaces the Machine. `Refuse`: ' +
      'nothing is accepted and nothing replaced, until you undo the change or an updater covers it. `Ask`: the same as `Refuse`, until ' +
      '`refit approve` names the object.',
    'Replace',
    'Refuse',
    'Ask',
  ),
});

const uncoveredSchema = object('A change that was refused a short time ago.', {
  object: z
    .string()
    .max(LONGEST.reference)
    .describe('The changed object, such as `MachineSet prod/workers-x7k2`.'),
  message: z.string().describe('The changes that no updater covers.'),
  asked: time('When Cluster API last asked for this change; up to 5 minutes old.'),
});

const statusSchema = object('The status. The extension and `refit approve` write it.', {
  approved: list(
    'Objects that may be replaced although no updater covers their change, such as `Machine prod/cp-1`.',
    z.string().max(LONGEST.reference),
  ),
  uncovered: list('Machines and MachineSets whose change is refused; at most 20.', uncoveredSchema),
  conditions: conditionsSchema.exactOptional(),
});

const updaterSetSchema = object(
  'The updaters behind `refit capi-extension`. Without an UpdaterSet for a Machine, Refit changes its version and nothing else.',
  { spec: specSchema, status: statusSchema.exactOptional() },
);

export type Updater = z.input<typeof updaterSchema>;
export type UpdaterSet = KubeObject & z.input<typeof updaterSetSchema>;

export const updaterSets = clusterScoped<UpdaterSet>('upgrade.refit.dev/v1alpha1', 'UpdaterSet');

export const updaterSetKind: CustomKind = { resource: updaterSets, schema: updaterSetSchema };
