"""Sets in the layouts of four hospitals, and a search for every name that went into a bundle.
usage: help_bundle_checks.py FUNCTION ARGUMENTS..."""
import csv
import gzip
import html
import json
import os
import re
import shutil
import sys
import tarfile


def search():
    run, house, archive, said = sys.argv[1:]
    names = {house, "St Elsewhere", "drmueller", "mueller", "elsewhere-table", "node17", "secret-hospital", "icu-node7", "hunter2", "TOKENX"}
    images = set()
    for row in csv.DictReader(open(f"{run}/split.csv", encoding="utf-8")):
        images |= {row["patient"], row["image"], os.path.splitext(row["image"].split("/")[-1])[0]}
        images |= {p for p in row["image"].split("/") if re.search(r"\d{4}|Müller", p)}
        images |= set(re.findall(r"\d{6,}", row["image"] + " " + row["patient"]))
        if "odd" in run.split("/"): images |= {"Kantonsspital", "Uri", "Zgraggen", "Vreni", "Brien", " MRN "}
    images = {n for n in images - {"view1_frontal"} if not re.fullmatch(r"\d{1,5}", n)}  # counts and figures hold those, too
    found = []
    def holds(text, name):  # a record number stands by itself: the digits of 0.1770003 are of a figure, and name nobody
        if name.isdigit(): return re.search(rf"(?<![\d.]){name}(?!\d)", text)
        return name in text or json.dumps(name)[1:-1] in text or html.escape(name) in text
    def search(where, data, wanted):
        text = data.decode("utf-8", "replace")
        found.extend((where, n) for n in wanted if holds(text, n))
        found.extend((where, h) for h in wanted & {os.uname().nodename} if re.search(rf"\b{re.escape(h)}\b", text))
    raw = gzip.decompress(open(archive, "rb").read())
    search("archive", raw, names | images)
    if re.search(rb"\b" + re.escape(os.uname().nodename.encode()) + rb"\b", raw): found.append(("archive", "host"))
    search("report.html", open(f"{run}/report.html", "rb").read() if os.path.exists(f"{run}/report.html") else b"", images)
    search("stderr", open(said, "rb").read(), images)
    whole = tarfile.open(archive)
    for member in whole.getmembers():
        if (member.uname, member.gname) != ("", ""): found.append((member.name, member.uname))
        text = whole.extractfile(member).read().decode() if member.isfile() else ""
        if member.name.endswith("jsonl"): [json.loads(line) for line in text.splitlines()]
        if member.name.endswith("config.yaml") and "arch: densenet121" not in text: found.append((member.name, "no config left"))
        if member.name.endswith("postmortem.json"): json.loads(text)
        if member.name.endswith("rank-000.txt") and "damaged PNG" not in text: found.append((member.name, "the damage is not told"))
    print(len(images), "names of images and patients searched for")
    for place, name in found: print("found in", place + ":", name)
    sys.exit(bool(found) or len(images) < 16)


def make_sets():
    phantom, house = sys.argv[1:]
    rows = list(csv.DictReader(open(f"{phantom}/Data_Entry_2017.csv")))[:16]
    def place(layout, name, source):
        path = f"{house}/{layout}/pictures/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(f"{phantom}/images/{source}", path)
    def table(layout, head, lines):
        open(f"{house}/{layout}/elsewhere-table.csv", "w").write("\n".join([head] + lines) + "\n")
    def make(layout, head, line, name):
        for i, r in enumerate(rows):
            place(layout, name(i).split("CheXpert-v1.0-small/")[-1] if layout == "mrn" else name(i), r["Image Index"])
        table(layout, head, [line(i) for i in range(len(rows))])
    nih = lambda i: f"{4711000 + i // 2:08d}_{i % 2:03d}.png"
    make("nih", "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Sex,View Position,W,H,x,y",
         lambda i: f"{nih(i)},{'Hernia' if i % 3 else 'No Finding'},{i % 2},{4711000 + i // 2},58,M,PA,1,1,0.1,0.1", nih)
    chexpert = lambda i: f"CheXpert-v1.0-small/train/patient{64000 + i // 2}/study{i % 2 + 1}/view1_frontal.jpg"
    make("chexpert", "Path,Sex,Age,Frontal/Lateral,AP/PA,Edema,Fracture", lambda i: f"{chexpert(i)},Male,50,Frontal,AP,{i % 2},{i // 2 % 2}", chexpert)
    mimic = lambda i: f"files/p10/p{10000006 + i // 2}/s{50414006 + i}/02aa804e-bde0afdd-{i:04x}.png"
    make("mimic", "image,patient,Edema,Fracture", lambda i: f"{mimic(i)},p{10000006 + i // 2},{i % 2},{i // 2 % 2}", mimic)
    odd = lambda i: f"Kantonsspital Uri/Zgraggen Vreni {i}/O'Brien={i};{i} MRN 77{i:03d} Zgraggen.png"
    make("odd", "image,patient,Edema,Fracture", lambda i: f"\"{odd(i)}\",77{i:03d},{i % 2},{i // 2 % 2}", odd)
    mrn = lambda i: f"Müller, Ann {i}/MRN-{770000 + i}.png"
    make("mrn", "image,patient,Edema,Fracture", lambda i: f"\"{mrn(i)}\",MRN-{770000 + i},{i % 2},{i // 2 % 2}", mrn)
    for name in (nih(3), chexpert(3), mimic(3), odd(3), mrn(3)):  # one damaged image each
        for layout in ("nih", "chexpert", "mimic", "odd", "mrn"):
            path = f"{house}/{layout}/pictures/{name}"
            if os.path.exists(path): open(path, "r+b").truncate(300)


def leak():
    place, run = sys.argv[1:]
    rows = list(csv.DictReader(open(f"{run}/split.csv", encoding="utf-8")))
    patient = rows[0]["patient"]
    same = [r["image"] for r in rows if r["patient"] == patient]
    open(f"{place}/test.txt", "w", encoding="utf-8").write((same[1:] or same)[0] + "\n")
    open(f"{place}/train.txt", "w", encoding="utf-8").write("\n".join(r["image"] for r in rows if r["image"] != (same[1:] or [""])[0]) + "\n")


globals()[sys.argv.pop(1)]()
