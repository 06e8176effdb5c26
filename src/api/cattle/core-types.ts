/**
 * Defines the core types of Kubernetes that Refit copies from a Plan to its pods. A typo in one of them makes the Plan invalid.
 */
import { z } from 'zod';
import { strictObject } from '../../util/strict-object.ts';

type Fields = Readonly<Record<string, z.ZodType>>;

const fields = (type: z.ZodType, ...names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [name, type.exactOptional()]));
const texts = (...names: readonly string[]): Fields => fields(z.string(), ...names);
const flags = (...names: readonly string[]): Fields => fields(z.boolean(), ...names);
const int64 = z.int().meta({ format: 'int64' });
const list = z.array(z.string()).meta({ 'x-kubernetes-list-type': 'atomic' });
const reference = (members: Fields): z.ZodType =>
  strictObject(members).meta({ 'x-kubernetes-map-type': 'atomic' });

/** The name of an object in the namespace of the Plan. */
const nameSchema = z.string().default('').describe('Name of the object.');
export const referenceSchema = reference({ name: nameSchema });
const divisorSchema = z.unknown().meta({
  'x-kubernetes-int-or-string': true,
  pattern:
    '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$',
});
const fileKey = {
  ...fields(z.boolean().default(false), 'optional'),
  path: z.string(),
  volumeName: z.string(),
};
const valueSchema = strictObject({
  ...fields(
    reference({ key: z.string(), name: nameSchema, ...flags('optional') }),
    'configMapKeyRef',
    'secretKeyRef',
  ),
  ...fields(reference({ ...texts('apiVersion'), fieldPath: z.string() }), 'fieldRef'),
  ...fields(reference({ key: z.string(), ...fileKey }), 'fileKeyRef'),
  ...fields(
    reference({
      ...texts('containerName'),
      ...fields(divisorSchema, 'divisor'),
      resource: z.string(),
    }),
    'resourceFieldRef',
  ),
});

export const variableSchema = strictObject({
  name: z.string(),
  value: z.string().exactOptional(),
  valueFrom: valueSchema.exactOptional(),
});

export const variablesSchema = strictObject({
  ...fields(reference({ name: nameSchema, ...flags('optional') }), 'configMapRef', 'secretRef'),
  ...texts('prefix'),
});

export const securityContextSchema = strictObject({
  ...flags('allowPrivilegeEscalation', 'privileged', 'readOnlyRootFilesystem', 'runAsNonRoot'),
  ...fields(
    strictObject({ type: z.string(), ...texts('localhostProfile') }),
    'appArmorProfile',
    'seccompProfile',
  ),
  ...fields(strictObject(fields(list, 'add', 'drop')), 'capabilities'),
  ...texts('procMount'),
  ...fields(int64, 'runAsGroup', 'runAsUser'),
  ...fields(strictObject(texts('level', 'role', 'type', 'user')), 'seLinuxOptions'),
  ...fields(
    strictObject({
      ...texts('gmsaCredentialSpec', 'gmsaCredentialSpecName', 'runAsUserName'),
      ...flags('hostProcess'),
    }),
    'windowsOptions',
  ),
});

export const tolerationSchema = strictObject({
  ...texts('effect', 'key', 'operator', 'value'),
  ...fields(int64, 'tolerationSeconds'),
});
