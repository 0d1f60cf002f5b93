"""A phantom set in the layouts of other data sets. usage: named_sets.py PHANTOM OUT
Each has the phantom's images by its own names; labels.csv says what is to come out: image and findings, blanks as they are."""
import csv
import gzip
import os
import sys

PHANTOM, OUT = sys.argv[1:]
rows = list(csv.reader(open(f'{PHANTOM}/Data_Entry_2017.csv')))[1:]
test = set(open(f'{PHANTOM}/test_list.txt').read().split())
CHEXPERT = ['No Finding', 'Enlarged Cardiomediastinum', 'Cardiomegaly', 'Lung Opacity', 'Lung Lesion', 'Edema', 'Consolidation', 'Pneumonia',
            'Atelectasis', 'Pneumothorax', 'Pleural Effusion', 'Pleural Other', 'Fracture', 'Support Devices']


def link(row, layout, name):
    path = f'{OUT}/{layout}/{name}'
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.link(f'{PHANTOM}/images/{row[0]}', path)
    return name


def write(layout, name, head, table):
    opened = gzip.open if name.endswith('.gz') else open
    with opened(f'{OUT}/{layout}/{name}', 'wt', newline='') as file:
        csv.writer(file, lineterminator='\n').writerows([head, *table])


def expect(layout, names):
    write(layout, 'expected.csv', ['image', 'finding'], [(name, finding) for name, findings in names.items() for finding in findings])


def findings(row):
    return [{'Effusion': 'Pleural Effusion'}.get(name, name) for name in row[1].split('|')]


def cells(row):
    return [1.0 if name in findings(row) else '' for name in CHEXPERT]


def mimic():
    studies, views, splits, expected = {}, [], [], {}
    for row in rows:
        subject, study, dicom = f'1000{int(row[3]):04d}', f'5000{int(row[3]):04d}', row[0].replace('.png', '-0a')
        # A study has the labels of its last picture: of several, these are the study's.
        studies[study] = [subject, study, *cells(row)]
        views.append([dicom, subject, study, row[6], 80556.875])
        splits.append([dicom, study, subject, 'test' if row[0] in test else 'validate' if int(row[3]) % 5 == 0 else 'train'])
        expected[link(row, 'mimic-cxr', f'files/p10/p{subject}/s{study}/{dicom}.jpg')] = study
    write('mimic-cxr', 'mimic-cxr-2.0.0-chexpert.csv.gz', ['subject_id', 'study_id', *CHEXPERT], studies.values())
    write('mimic-cxr', 'mimic-cxr-2.0.0-metadata.csv.gz', ['dicom_id', 'subject_id', 'study_id', 'ViewPosition', 'StudyTime'], views)
    write('mimic-cxr', 'mimic-cxr-2.0.0-split.csv.gz', ['dicom_id', 'study_id', 'subject_id', 'split'], splits)
    expect('mimic-cxr', {name: [c for c, v in zip(CHEXPERT, studies[study][2:]) if v] for name, study in expected.items()})


def padchest():
    words = {'Effusion': 'pleural effusion', 'Infiltration': 'infiltrates', 'Mass': 'pulmonary mass', 'Edema': 'pulmonary edema',
             'Fibrosis': 'pulmonary fibrosis', 'Pleural_Thickening': 'apical pleural thickening', 'Hernia': 'hiatal hernia', 'No Finding': 'normal'}
    table, expected = [], {}
    for number, row in enumerate(rows):
        name = link(row, 'padchest', f'{number % 3}/{row[0]}')
        said = ["pseudonodule"] + [words.get(f, f.lower()) for f in row[1].split('|')]
        table.append([number, row[0], number % 3, '20080512', number, row[3], f'{2008 - int(row[4])}.0', row[5], row[6], str(said)])
        expected[name] = [f for f in row[1].split('|') if f != 'No Finding']
    write('padchest', 'padchest.csv', ['', 'ImageID', 'ImageDir', 'StudyDate_DICOM', 'StudyID', 'PatientID', 'PatientBirth', 'PatientSex_DICOM',
                                       'Projection', 'Labels'], table)
    expect('padchest', expected)


def vindr():
    names = ['Cardiomegaly', 'Nodule/Mass', 'Pleural effusion', 'Pulmonary fibrosis', 'Other diseases']
    own = {'Effusion': 'Pleural effusion', 'Fibrosis': 'Pulmonary fibrosis', 'Mass': 'Nodule/Mass', 'Nodule': 'Nodule/Mass'}
    tables, expected = {'train': [], 'test': []}, {}
    for number, row in enumerate(rows):
        image = f'{number:032x}'
        said = {own.get(f, f) for f in row[1].split('|')}
        votes = [int(name in said) for name in names]
        expected[link(row, 'vindr', f'{image}.png')] = [{'Pulmonary fibrosis': 'Fibrosis'}.get(n, n) for n, v in zip(names, votes) if v]
        if row[0] in test:
            tables['test'].append([image, *votes, int(not any(votes))])
        else:  # one of three readers says the opposite
            for reader in range(3):
                tables['train'].append([image, f'R{reader}', *(1 - v if reader == number % 3 else v for v in votes), 0])
    write('vindr', 'image_labels_train.csv', ['image_id', 'rad_id', *names, 'No finding'], tables['train'])
    write('vindr', 'image_labels_test.csv', ['image_id', *names[:-1], 'Other disease', 'No finding'], tables['test'])
    expect('vindr', expected)


def brax():
    table, expected = [], {}
    for row in rows:
        name = link(row, 'brax', f'images/id_{row[3]}/Study_1/{row[0]}')
        table.append(['x.dcm', name, f'id_{row[3]}', row[5], '85 or more', 1, '20100101', *cells(row), row[6], 48, 48, 'Maker'])
        expected[name] = [f for f in findings(row) if f in CHEXPERT]
    write('brax', 'master_spreadsheet_update.csv', ['DicomPath', 'PngPath', 'PatientID', 'PatientSex', 'PatientAge', 'AccessionNumber', 'StudyDate',
                                                    *CHEXPERT, 'ViewPosition', 'Rows', 'Columns', 'Manufacturer'], table)
    expect('brax', expected)


for draw in (mimic, padchest, vindr, brax):
    draw()
